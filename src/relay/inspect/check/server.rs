//! What holds for all relays: the server, the way to it, and the schema `outbox`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_postgres::error::SqlState;

use crate::database::error::UNREACHABLE;
use crate::database::{Error, Session, Sessions};
use crate::migrate::{self, MigrateError};
use crate::position::Timestamp;
use crate::relay::inspect::check::hindrances;
use crate::source::finding::{Finding, Level};

/// A pooler that changes the server process between statements is found by this many transactions at once.
const SESSIONS: usize = 10;
/// Clocks this far apart are worth a warning.
const SKEW: Duration = Duration::from_secs(5);

/// Why there is no connection.
pub(super) fn connection(error: &Error) -> Finding {
    let code = match error {
        Error::Standby(_) => "standby",
        Error::Pooler(_) | Error::Setting { .. } => "pooler",
        Error::Tls { .. } => "tls",
        _ if error.state() == Some(&SqlState::INVALID_CATALOG_NAME) => "database_missing",
        _ if error.refused_credentials() => "credentials",
        _ => "connection",
    };
    let fix = if matches!(error, Error::Timeout(_)) { UNREACHABLE } else { error.fix() };
    Finding::new(Level::Error, code, error.without_fix()).setting(fix)
}

pub(super) async fn server(session: &Session) -> Vec<Finding> {
    let mut findings = vec![
        Finding::new(Level::Ok, "primary", "the server is a primary"),
        settled("version", version(session).await),
        settled("session_settings", settings(session).await),
    ];
    findings.extend(schema(session).await.unwrap_or_else(|error| vec![failed("schema_version", &error)]));
    match hindrances::findings(session).await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(failed("privilege_missing", &error)),
    }
    match prepared(session).await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(failed("prepared_transactions", &error)),
    }
    findings.push(settled("clock_difference", clock(session).await));
    findings
}

fn settled(code: &'static str, result: Result<Finding, Error>) -> Finding {
    result.unwrap_or_else(|error| failed(code, &error))
}

fn failed(code: &'static str, error: &Error) -> Finding {
    Finding::new(Level::Error, code, error.to_string())
}

async fn version(session: &Session) -> Result<Finding, Error> {
    let version: i32 =
        session.query_one("SELECT current_setting('server_version_num')::integer", &[]).await?.try_get(0)?;
    let major = version / 10_000;
    Ok(if major < 14 {
        Finding::new(Level::Error, "version", format!("PostgreSQL {major} is too old: 14 or newer is needed"))
    } else {
        Finding::new(Level::Ok, "version", format!("PostgreSQL {major}"))
    })
}

/// Whether a transaction pooler is in between.
pub(super) async fn direct(sessions: &Sessions) -> Finding {
    match sessions.direct(SESSIONS).await {
        Ok(()) => Finding::new(Level::Ok, "direct_connection", "each session keeps its server process"),
        Err(error @ (Error::Pooler(_) | Error::Setting { .. })) => connection(&error),
        Err(error) => {
            let message = format!("could not open {SESSIONS} sessions to look for a pooler: {error}");
            Finding::new(Level::Error, "direct_connection", message)
                .setting("Allow the role at least pool_size connections, on the server and in any pooler.")
        }
    }
}

/// What the rules rest on, as the session says it.
async fn settings(session: &Session) -> Result<Finding, Error> {
    let sql = include_str!("../sql/check_settings.sql");
    let row = session.query_one(sql, &[]).await?;
    let [zone, row_security]: [String; 2] = [row.try_get(0)?, row.try_get(1)?];
    let [idle, statement]: [String; 2] = [row.try_get(2)?, row.try_get(3)?];
    let message = format!(
        "TimeZone {zone}, row_security {row_security}, a silent holder loses its lock after {idle}, a statement is cut \
         after {statement}"
    );
    let kept = zone == "UTC" && row_security == "off";
    Ok(Finding::new(if kept { Level::Ok } else { Level::Error }, "session_settings", message))
}

/// The schema's version, and what the role may do with it.
async fn schema(session: &Session) -> Result<Vec<Finding>, Error> {
    let found = match migrate::require(session).await {
        Ok(found) => {
            Some(Finding::new(Level::Ok, "schema_version", format!("schema outbox has version {}", found.version)))
        }
        Err(MigrateError::Database(error)) => return Err(error),
        Err(MigrateError::NotGranted { .. }) => None,
        Err(error) => {
            return Ok(vec![
                Finding::new(Level::Error, "schema_version", error.to_string())
                    .setting("Run `outbox-relay migrate up` as an owner."),
            ]);
        }
    };
    Ok(found.into_iter().chain([privileges(session).await?]).collect())
}

async fn privileges(session: &Session) -> Result<Finding, Error> {
    let role: String = session.query_one("SELECT current_user::text", &[]).await?.try_get(0)?;
    let lacking = migrate::lacking(session, &migrate::relay_grants(&role, &[])).await?;
    let missing = lacking.privileges();
    if missing.is_empty() {
        return Ok(Finding::new(Level::Ok, "privileges", format!("role {role} may use the schema outbox")));
    }
    let message = format!("role {role} lacks {}", missing.join("; "));
    Ok(Finding::new(Level::Error, "privilege_missing", message)
        .sql(lacking.sql())
        .setting(format!("Or run `outbox-relay migrate up --relay-role {role}` as an owner.")))
}

async fn prepared(session: &Session) -> Result<Option<Finding>, Error> {
    let count: i64 = session.query_one("SELECT count(*) FROM pg_catalog.pg_prepared_xacts", &[]).await?.try_get(0)?;
    let message =
        format!("{count} prepared transactions are open: those that wrote a relay's table hold its horizon back");
    Ok((count > 0).then(|| {
        Finding::new(Level::Warn, "prepared_transactions", message)
            .sql("SELECT gid, prepared, owner, database FROM pg_prepared_xacts ORDER BY prepared;")
    }))
}

async fn clock(session: &Session) -> Result<Finding, Error> {
    let before = here();
    let clock: Timestamp = session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
    // The answer is from somewhere between asking and hearing it: the middle is taken.
    let here = before.plus(here().since(before) / 2);
    let skew = clock.since(here).max(here.since(clock));
    let level = if skew > SKEW { Level::Warn } else { Level::Ok };
    let message =
        format!("this machine's clock and PostgreSQL's differ by {skew:.1?}; only PostgreSQL's counts for the relay");
    Ok(Finding::new(level, "clock_difference", message))
}

/// This machine's clock.
pub(super) fn here() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
