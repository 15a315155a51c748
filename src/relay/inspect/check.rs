//! `check`: asks the real PostgreSQL and Kafka whether every relay can do its work, and says what fixes it.
//!
//! An error ends no other check: what is wrong with a table says nothing about a topic.

use std::sync::Arc;
use std::time::Instant;

use crate::database::{self, Error, Session, Sessions};
use crate::message::Field;
use crate::relay::queue::actions;
use crate::relay::queue::pending;
use crate::relay::queue::requests;
use crate::relay::setup::encoding;
use crate::relay::setup::naming;
use crate::relay::setup::shards;
use crate::relay::setup::sinks;
use crate::relay::{Config, OnUnknown};
use crate::sink::kafka::{Cluster, Passed};
use crate::sink::sql::SqlSink;
use crate::sink::{self, Failure};
use crate::source::finding::{Finding, Level};
use crate::source::shape::{After, Shape};
use crate::source::{self, Pending, Requests, Schedules, judge, table};

mod audit;
mod certificates;
mod cursors;
mod custom;
mod email;
mod hindrances;
mod memory;
mod notify;
mod partitions;
mod roles;
mod secrets;
mod server;
mod standby;
mod statements;
mod topic;
mod transport;

use statements::{prepare, statement};

/// A source that rows can be read from, and what its relay reads of them.
#[derive(Debug)]
struct Readable {
    shape: Shape,
    fields: Vec<Field>,
}

/// What was found so far: the server first, then relay by relay.
#[derive(Debug, Default)]
pub struct CheckResults {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Who was asked, and when that began; the last is being asked.
    pub asked: Vec<(String, Instant)>,
}

/// Everything that can be found, into `found` as it comes.
pub async fn check(sessions: &Sessions, cluster: Option<&Arc<Cluster>>, relays: &[Config], found: &mut CheckResults) {
    let CheckResults { findings, asked: asking } = found;
    let mut ask = |whom: String| asking.push((whom, Instant::now()));
    ask("PostgreSQL".to_owned());
    let session = match sessions.open().await {
        Ok(session) => {
            findings.push(Finding::new(Level::Ok, "connection", format!("connected to {}", sessions.target())));
            findings.push(server::direct(sessions).await);
            // Through a pooler, whatever else was asked would be another session's answer.
            Some(session).filter(|_| findings.iter().all(|finding| finding.code != "pooler"))
        }
        Err(error) => {
            findings.push(server::connection(&error));
            None
        }
    };
    if let Some(session) = &session {
        findings.extend(server::server(session).await);
        let names: Vec<String> = relays.iter().map(|relay| relay.name.clone()).collect();
        for orphans in [requests::orphans(session, &names).await, actions::orphans(session, &names).await] {
            match orphans {
                Ok(orphans) => findings.extend(orphans),
                Err(error) if no_schema(&error) => {}
                Err(error) => findings.push(Finding::new(Level::Error, "database", error.to_string())),
            }
        }
    }
    findings.extend(certificates::of_servers(sessions, cluster));
    findings.extend(cluster.map(|cluster| transport::findings(cluster)).into_iter().flatten());
    findings.extend(memory::limit(sessions, relays));
    let configured: Vec<String> = relays.iter().map(|relay| relay.relay.clone()).collect();
    let mut read = Vec::new();
    // PostgreSQL first, for all relays: a target that does not answer must not use up the time for it.
    for relay in relays.iter().filter(|relay| relay.is_first_shard()) {
        ask(format!("PostgreSQL, about relay {}", relay.relay));
        let mut readable = None;
        if let Some(session) = &session {
            let (rows, found) = in_database(session, relay, relays, &configured).await;
            readable = rows;
            findings.extend(found.into_iter().map(|finding| Finding { relay: relay.relay.clone(), ..finding }));
        }
        read.push((relay, readable));
    }
    let mut away = None;
    for (relay, readable) in read {
        ask(format!("the target of relay {}", relay.relay));
        let rows = session.as_ref().zip(readable.as_ref());
        let found = at_target(cluster, relay, rows, &mut away).await;
        // Nor is the name of a topic that is not there.
        if let sink::Config::Kafka(config) = &relay.sink
            && found.iter().any(|finding| topic::is_missing(finding, &config.topic))
        {
            findings.retain(|finding| finding.relay != relay.relay || finding.code != "identity_changed");
        }
        findings.extend(found.into_iter().map(|finding| Finding { relay: relay.relay.clone(), ..finding }));
    }
}

/// What PostgreSQL says about a relay, and its rows, where they can be read.
async fn in_database(
    session: &Session,
    relay: &Config,
    relays: &[Config],
    configured: &[String],
) -> (Option<Readable>, Vec<Finding>) {
    let mut found = Vec::new();
    let mut readable = None;
    match rows(session, relay, configured, &mut found).await {
        Ok(rows) => readable = rows,
        Err(error) => found.push(Finding::new(Level::Error, "database", error.to_string())),
    }
    let shards: Vec<&Config> = relays.iter().filter(|shard| shard.relay == relay.relay).collect();
    let shape = readable.as_ref().map(|readable| &readable.shape);
    match cursors::findings(session, &shards, configured, shape).await {
        Ok(cursors) => {
            // A name that no table has is to be corrected, not adopted.
            let missing = found.iter().any(|finding| finding.code == "table_missing");
            found.extend(cursors.into_iter().filter(|finding| !missing || finding.code != "identity_changed"));
        }
        Err(error) if no_schema(&error) => {}
        Err(error) => found.push(Finding::new(Level::Error, "database", error.to_string())),
    }
    (readable, found)
}

/// What a relay's target, and the topic of its dead letters, say.
async fn at_target(
    cluster: Option<&Arc<Cluster>>,
    relay: &Config,
    rows: Option<(&Session, &Readable)>,
    away: &mut Option<Failure>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if let sink::Config::Kafka(config) = &relay.sink {
        found.extend(topic::topic(cluster, config, rows, away).await);
    }
    found.extend(secrets::uncontacted(relay));
    found.extend(secrets::usable(relay));
    found.extend(certificates::of_receiver(relay));
    found.extend(secrets::token(relay).await);
    if let sink::Config::Email(config) = &relay.sink {
        found.extend(email::server(relay, config).await);
    }
    if let sink::Config::Custom(config) = &relay.sink {
        found.push(custom::receiver(relay, config).await);
    }
    if let Some(name) = &relay.dead_letter_topic {
        found.push(topic::letters(cluster, name, away).await);
    }
    for fix in found.iter_mut().filter_map(|finding| finding.fix_setting.as_mut()) {
        *fix = sink::named(fix, &relay.relay);
    }
    found
}

/// Without a table of the schema, or rights on it, a migration or a grant is missing: the schema's own findings say so.
fn no_schema(error: &Error) -> bool {
    ["42", "3F"].contains(&error.state_class())
}

/// Whether the relay's rows can be read, and all that its sink asks for; `configured` are the names of all relays.
async fn rows(
    session: &Session,
    relay: &Config,
    configured: &[String],
    findings: &mut Vec<Finding>,
) -> Result<Option<Readable>, Error> {
    if !matches!(relay.source, source::Config::Stream(_)) {
        findings.extend(encoding::finding(session).await?);
    }
    let source = match &relay.source {
        source::Config::Stream(stream) => stream,
        source::Config::Pending(pending) => return due(session, relay, pending, findings).await.map(|()| None),
        source::Config::Requests(ledger) => {
            return requested(session, relay, (ledger, configured), findings).await.map(|()| None);
        }
        source::Config::Schedule(schedules) => {
            return scheduled(session, relay, schedules, findings).await.map(|()| None);
        }
    };
    let table = match table::inspect(session, source).await {
        Ok(table) => table,
        Err(table::InspectError::Database(error)) => return Err(error),
        Err(error) => {
            findings.extend(error.findings());
            return Ok(None);
        }
    };
    findings.push(Finding::new(Level::Ok, "table", format!("{} is there", source.table)));
    let verdict = judge::judge(&table, source);
    let of_shards = shards::findings(session, relay, &table, source).await?;
    let fit = verdict.findings.iter().chain(&of_shards).all(|finding| finding.level < Level::Error);
    findings.extend(verdict.findings.iter().cloned().chain(of_shards));
    if relay.poll.notify {
        findings.push(notify::trigger(session, table.root, source).await?);
    }
    if source.standbys > 0 {
        findings.push(standby::connected(session, source.standbys).await?);
    }
    let shape = Shape { shard: relay.shard.clone(), ..table.shape(source, &verdict) };
    findings.extend(partitions::finding(relay, &shape));
    findings.push(audit::finding(relay, &shape));
    let Some(fields) = asked(relay, sinks::KnownTable::of(&shape), findings) else { return Ok(None) };
    if !fit {
        return Ok(None);
    }
    if let Err(error) = session.prepare(&shape.fetch_sql(&fields, After::Row, Some(relay.turn.max_row_bytes))).await {
        let said = database::error::describe(&error);
        let fix = naming::hint(relay, &said, "Correct the column named in the relay's sink, or grant SELECT on it.");
        findings.push(Finding::new(Level::Error, "column_unreadable", said).setting(fix));
        return Ok(None);
    }
    if let sink::Config::Sql(config) = &relay.sink
        && let Ok(sink) = SqlSink::new(config, &shape.columns)
    {
        findings.push(statement(session, &sink).await);
    }
    let readable = Readable { shape, fields };
    findings.push(memory::rows(session, &readable, relay.turn.max_row_bytes).await?);
    Ok(Some(readable))
}

/// Whether the relay's sink can work with actions, the ledger of them is there, and queries can run as their roles.
async fn scheduled(
    session: &Session,
    relay: &Config,
    source: &Schedules,
    findings: &mut Vec<Finding>,
) -> Result<(), Error> {
    let columns = source::schedule::columns();
    asked(relay, sinks::KnownTable { passed: Passed::default(), columns: &columns }, findings);
    if let sink::Config::Sql(config) = &relay.sink
        && let Ok(sink) = SqlSink::new(config, &columns)
    {
        findings.push(statement(session, &sink).await);
    }
    findings.extend(roles::findings(session, relay, source).await?);
    findings.extend(actions::findings(session, relay).await?);
    Ok(())
}

/// What the relay's sink asks for of each row; none when it cannot say.
fn asked(relay: &Config, table: sinks::KnownTable<'_>, findings: &mut Vec<Finding>) -> Option<Vec<Field>> {
    let fields = match sinks::fields(relay, table) {
        Ok(fields) => fields,
        Err(invalid) => {
            findings.extend(invalid.iter().map(|setting| {
                Finding::new(Level::Error, "invalid_setting", setting.to_string())
                    .setting("Correct this setting of the relay's sink.")
            }));
            return None;
        }
    };
    let fix = match &relay.sink {
        sink::Config::Kafka(_) => Some("List the columns: payload = { columns = [\"…\"] }."),
        sink::Config::Http(_) | sink::Config::Sms(_) | sink::Config::Webhook(_) => {
            Some("Write the body as a template that names the columns.")
        }
        sink::Config::Custom(_) => Some("Have the sink read the columns that it needs (Description::reading)."),
        // It names its columns; it prints what there is.
        sink::Config::Sql(_) | sink::Config::Email(_) | sink::Config::Stdout(_) | sink::Config::Command(_) => None,
    };
    let is_whole = fields.iter().any(|field| matches!(field, Field::Row | Field::Debezium(None)));
    // What requests and actions have is the relay's own: it gets no other columns.
    let own = matches!(relay.source, source::Config::Requests(_) | source::Config::Schedule(_));
    if let Some(fix) = fix.filter(|_| is_whole && !own) {
        let message = "the payload is the whole row: every column added later is published, too";
        findings.push(Finding::new(Level::Warn, "whole_row", message).setting(fix));
    }
    Some(fields)
}

/// Whether the relay's due work can be claimed, and all that its sink asks for be read.
async fn due(session: &Session, relay: &Config, config: &Pending, findings: &mut Vec<Finding>) -> Result<(), Error> {
    let (found, due) = pending::due(session, config).await?;
    findings.extend(found);
    let Some(due) = due else { return Ok(()) };
    let Some(fields) = asked(relay, sinks::KnownTable::of_due(due.traceparent), findings) else { return Ok(()) };
    let fix =
        "Correct the column or the constant named in [relay.source.pending] or the sink, or grant what is missing.";
    prepare(session, relay, (&pending::statements(&due, &fields, relay.guarantee), fix), findings).await;
    Ok(())
}

/// Whether the relay's requests can be worked off, and what of its guarantee rests on the receiver alone.
async fn requested(
    session: &Session,
    relay: &Config,
    (ledger, configured): (&Requests, &[String]),
    findings: &mut Vec<Finding>,
) -> Result<(), Error> {
    let Some(fields) = asked(relay, sinks::KnownTable::of_due(false), findings) else { return Ok(()) };
    let fix = "Run `outbox-relay migrate up --relay-role ROLE` with an owner's [postgres] url.";
    if prepare(session, relay, (&requests::statements(&fields, ledger.lanes.as_ref()), fix), findings).await {
        findings.extend(requests::findings(session, &relay.name, ledger, configured).await?);
    }
    if relay.on_unknown == OnUnknown::Resend && matches!(relay.sink, sink::Config::Sms(_) | sink::Config::Email(_)) {
        let message = "on_unknown is resend, and this receiver knows no idempotency keys: a message may arrive twice";
        let fix = "Write on_unknown = \"dead_letter\", so that each such outcome is listed for a person to decide.";
        findings.push(Finding::new(Level::Warn, "resend_without_key", message).setting(fix));
    }
    Ok(())
}
