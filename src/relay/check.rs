//! `check`: asks the real PostgreSQL and Kafka whether every relay can do its work, and says what mends it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Config, prepare};
use crate::database::{self, Error, Session, Sessions};
use crate::message::Field;
use crate::migrate;
use crate::position::Timestamp;
use crate::sink::kafka::{self, Cluster, describe_topic};
use crate::sink::{self, Class};
use crate::source::finding::{Finding, Level};
use crate::source::{judge, table};

/// A pooler that changes the server process between statements is found by this many transactions at once.
const SESSIONS: usize = 10;
/// Clocks this far apart are worth a warning.
const SKEW: Duration = Duration::from_secs(5);
const KAFKA_PATIENCE: Duration = Duration::from_secs(5);

/// Everything that was found, the server first, then relay by relay. An error ends no other check.
pub async fn check(sessions: &Sessions, cluster: Option<&Arc<Cluster>>, relays: &[Config]) -> Vec<Finding> {
    let session = match sessions.open().await {
        Ok(session) => session,
        Err(error) => return vec![connection(&error)],
    };
    let mut findings = vec![Finding::new(Level::Ok, "connection", format!("connected to {}", sessions.target()))];
    match pooler(sessions).await {
        // Whatever is asked through a pooler is answered by whichever session comes first.
        Ok(found) if found.level == Level::Error => return vec![found],
        Ok(found) => findings.push(found),
        Err(error) => findings.push(Finding::new(Level::Error, "server", error.to_string())),
    }
    match server(&session).await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(Finding::new(Level::Error, "server", error.to_string())),
    }
    for relay in relays {
        let found = match self::relay(&session, cluster, relay).await {
            Ok(found) => found,
            Err(error) => vec![Finding::new(Level::Error, "database", error.to_string())],
        };
        findings.extend(found.into_iter().map(|finding| Finding { relay: relay.name.clone(), ..finding }));
    }
    findings
}

fn connection(error: &Error) -> Finding {
    let (code, mend) = match error {
        Error::Standby(_) => ("standby", "Point [postgres] url at the primary."),
        _ if error.shows_pooler() => ("pooler", "Connect to PostgreSQL directly, not through a transaction pooler."),
        _ if error.refused_credentials() => ("credentials", "Check [postgres] url and password_file."),
        _ => ("connection", "Check [postgres] url, sslmode and ca_file, and that the server runs."),
    };
    Finding::new(Level::Error, code, error.to_string()).setting(mend)
}

async fn server(session: &Session) -> Result<Vec<Finding>, Error> {
    let mut findings = vec![Finding::new(Level::Ok, "primary", "the server is a primary")];
    let version: i32 =
        session.query_one("SELECT current_setting('server_version_num')::integer", &[]).await?.try_get(0)?;
    findings.push(if version < 140_000 {
        Finding::new(
            Level::Error,
            "version",
            format!("PostgreSQL {} is too old: 14 or newer is needed", version / 10_000),
        )
    } else {
        Finding::new(Level::Ok, "version", format!("PostgreSQL {}", version / 10_000))
    });
    findings.push(match migrate::require(session).await {
        Ok(found) => Finding::new(Level::Ok, "schema_version", format!("schema outbox has version {}", found.version)),
        Err(error) => Finding::new(Level::Error, "schema_version", error.to_string())
            .setting("Run `outbox-relay migrate up` as an owner."),
    });
    findings.extend(privileges(session).await?);
    let prepared: i64 =
        session.query_one("SELECT count(*) FROM pg_catalog.pg_prepared_xacts", &[]).await?.try_get(0)?;
    if prepared > 0 {
        findings.push(
            Finding::new(
                Level::Warn,
                "prepared_transactions",
                format!(
                    "{prepared} prepared transactions are open: those that wrote a relay's table hold its horizon back"
                ),
            )
            .sql("SELECT gid, prepared, owner FROM pg_prepared_xacts ORDER BY prepared;"),
        );
    }
    let clock: Timestamp = session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let here = Timestamp::from_unix_micros(i64::try_from(here.as_micros()).unwrap_or(i64::MAX));
    let skew = clock.since(here).max(here.since(clock));
    if skew > SKEW {
        findings.push(Finding::new(
            Level::Warn,
            "clock_difference",
            format!("this machine's clock and PostgreSQL's differ by {skew:?}; only PostgreSQL's counts for the relay"),
        ));
    }
    Ok(findings)
}

async fn pooler(sessions: &Sessions) -> Result<Finding, Error> {
    let stable = match keep_their_process(sessions).await {
        Err(error) if error.shows_pooler() => false,
        stable => stable?,
    };
    Ok(if stable {
        Finding::new(Level::Ok, "direct_connection", "each session keeps its server process")
    } else {
        Finding::new(Level::Error, "pooler", "a transaction pooler is in between: sessions change their server process")
            .setting("Point [postgres] url at PostgreSQL itself.")
    })
}

/// A transaction pooler gives each transaction whichever server process is free: under as many transactions as sessions,
/// some session meets two of them, or two sessions the same.
async fn keep_their_process(sessions: &Sessions) -> Result<bool, Error> {
    let opened = futures_util::future::try_join_all((0..SESSIONS).map(|_| sessions.open())).await?;
    let mut stable = opened.iter().map(|session| session.pid).collect::<BTreeSet<_>>().len() == SESSIONS;
    for _ in 0..3 {
        let pids = opened.iter().map(|session| async move {
            let row = session.query_one("SELECT pg_backend_pid() FROM pg_sleep(0.01)", &[]).await?;
            Ok::<i32, Error>(row.try_get(0)?)
        });
        let pids = futures_util::future::try_join_all(pids).await?;
        stable &= pids.iter().zip(&opened).all(|(pid, session)| *pid == session.pid);
    }
    Ok(stable)
}

async fn privileges(session: &Session) -> Result<Vec<Finding>, Error> {
    let rows = session
        .query(
            "SELECT t.name, p.privilege FROM (VALUES ('cursor'), ('control'), ('cursor_status'), ('operation')) AS t (name) \
             CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE')) AS p (privilege) \
             JOIN pg_catalog.pg_class AS c ON c.relname = t.name \
             JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = 'outbox' \
             WHERE NOT pg_catalog.has_table_privilege(c.oid, p.privilege)",
            &[],
        )
        .await?;
    let role: String = session.query_one("SELECT current_user::text", &[]).await?.try_get(0)?;
    let mut missing = Vec::new();
    for row in &rows {
        missing.push(format!("{} on outbox.{}", row.try_get::<_, &str>(1)?, row.try_get::<_, &str>(0)?));
    }
    Ok(if missing.is_empty() {
        vec![Finding::new(Level::Ok, "privileges", format!("role {role} may use the schema outbox"))]
    } else {
        vec![
            Finding::new(Level::Error, "privilege_missing", format!("role {role} lacks {}", missing.join(", ")))
                .sql(migrate::relay_grants(&role, &[]))
                .setting(format!("Or run `outbox-relay migrate up --relay-role {role}` as an owner.")),
        ]
    })
}

async fn relay(session: &Session, cluster: Option<&Arc<Cluster>>, relay: &Config) -> Result<Vec<Finding>, Error> {
    let table = match table::inspect(session, &relay.source).await {
        Ok(table) => table,
        Err(table::InspectError::Database(error)) => return Err(error),
        Err(error) => return Ok(error.findings()),
    };
    let verdict = judge::judge(&table, &relay.source);
    let mut findings = verdict.findings.clone();
    findings.insert(0, Finding::new(Level::Ok, "table", format!("{} is there", relay.source.table)));
    if findings.iter().any(|finding| finding.level == Level::Error) {
        return Ok(findings);
    }
    let shape = table.shape(&relay.source, &verdict);
    let fields = match prepare::fields(relay, &shape) {
        Ok(fields) => fields,
        Err(invalid) => {
            findings.extend(invalid.iter().map(|setting| {
                Finding::new(Level::Error, "invalid_setting", setting.to_string())
                    .setting("Correct this setting of the relay's sink.")
            }));
            return Ok(findings);
        }
    };
    let sql = shape.fetch_sql(&fields, crate::source::shape::After::Row);
    if let Err(error) = session.prepare(&sql).await {
        findings.push(
            Finding::new(Level::Error, "column_unreadable", database::error::describe(&error))
                .setting("Correct the column named in the relay's sink, or grant SELECT on it."),
        );
    }
    if fields.contains(&Field::Row) {
        findings.push(
            Finding::new(
                Level::Warn,
                "whole_row",
                "the payload is the whole row: every column added later is published, too",
            )
            .setting("List the columns: payload = { columns = [\"…\"] }."),
        );
    }
    if let sink::Config::Kafka(config) = &relay.sink {
        findings.extend(topic(session, cluster, config, &shape, &fields).await?);
    }
    Ok(findings)
}

async fn topic(
    session: &Session,
    cluster: Option<&Arc<Cluster>>,
    config: &kafka::Config,
    shape: &crate::source::shape::Shape,
    fields: &[Field],
) -> Result<Vec<Finding>, Error> {
    let Some(cluster) = cluster else {
        return Ok(vec![Finding::new(Level::Error, "kafka_missing", "no [kafka] section").setting("Add [kafka].")]);
    };
    if config.templated() {
        return Ok(vec![Finding::new(
            Level::Ok,
            "topic",
            "the topic depends on the row: it is checked when it is used",
        )]);
    }
    let facts = match describe_topic(cluster, &config.topic, KAFKA_PATIENCE).await {
        Ok(facts) => facts,
        Err(failure) => {
            let code = if failure.class == Class::Fatal { "kafka_refused" } else { "kafka_unreachable" };
            return Ok(vec![Finding::new(Level::Error, code, failure.message).setting(failure.hint)]);
        }
    };
    if let Err((code, message, hint)) = prepare::kafka_topic(config, &facts) {
        return Ok(vec![Finding::new(Level::Error, code, message).setting(hint)]);
    }
    let name = &config.topic;
    let mut findings =
        vec![Finding::new(Level::Ok, "topic", format!("topic {name} has {} partitions", facts.partitions))];
    let Some(limit) = facts.max_message_bytes else {
        findings.push(
            Finding::new(
                Level::Warn,
                "topic_limit_unknown",
                format!("max.message.bytes of topic {name} cannot be read"),
            )
            .setting("Grant DescribeConfigs on the topic; until then records above 1,000,000 bytes are refused."),
        );
        return Ok(findings);
    };
    let largest = largest(session, shape, fields).await?;
    findings.push(if largest >= limit {
        Finding::new(
            Level::Warn,
            "message_too_large",
            format!("among the newest 1,000 rows one takes {largest} bytes; topic {name} accepts {limit}"),
        )
        .setting("Raise the topic's max.message.bytes.")
    } else {
        Finding::new(
            Level::Ok,
            "message_size",
            format!("the largest of the newest 1,000 rows takes {largest} of {limit} bytes"),
        )
    });
    Ok(findings)
}

/// Bytes of the largest of the newest 1,000 rows' values.
async fn largest(session: &Session, shape: &crate::source::shape::Shape, fields: &[Field]) -> Result<usize, Error> {
    let row = session.query_one(&shape.largest_sql(fields), &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX))
}
