//! Whether what a relay reads is there, and all that its sink asks for: for each kind of source.

use super::statements::{prepare, statement};
use super::{Readable, audit, collation, memory, notify, partitions, roles, standby};
use crate::database::{self, Error, Session};
use crate::message::Field;
use crate::relay::queue::actions;
use crate::relay::queue::due_rows;
use crate::relay::queue::requests;
use crate::relay::setup::encoding;
use crate::relay::setup::naming;
use crate::relay::setup::shards;
use crate::relay::setup::sinks;
use crate::relay::{Config, OnUnknown};
use crate::sink;
use crate::sink::kafka::Passed;
use crate::sink::sql::SqlSink;
use crate::source::finding::{Finding, Level};
use crate::source::shape::{After, Shape};
use crate::source::{self, Pending, Requests, Schedules, judge, table};

/// Whether the relay's rows can be read, and all that its sink asks for; `configured` are the names of all relays.
pub(super) async fn rows(
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
    findings.extend(collation::finding(session, &shape).await?);
    findings.push(audit::finding(relay, &shape));
    let Some(fields) = asked(relay, sinks::KnownTable::of(&shape), findings) else { return Ok(None) };
    let casts = shape.casts_called(&fields);
    let fit = fit && casts.is_empty();
    findings.extend(casts);
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
    let (found, due) = due_rows::due(session, config).await?;
    findings.extend(found);
    let Some(due) = due else { return Ok(()) };
    let Some(fields) = asked(relay, sinks::KnownTable::of_due(due.traceparent), findings) else { return Ok(()) };
    findings.extend(due.casts_called(&fields));
    let fix =
        "Correct the column or the constant named in [relay.source.pending] or the sink, or grant what is missing.";
    prepare(session, relay, (&due_rows::statements(&due, &fields, relay.guarantee), fix), findings).await;
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
    if relay.on_unknown == OnUnknown::Resend && relay.sink.of_kind().knows_no_idempotency_keys() {
        let message = "on_unknown is resend, and this receiver knows no idempotency keys: a message may arrive twice";
        let fix = "Write on_unknown = \"dead_letter\", so that each such outcome is listed for a person to decide.";
        findings.push(Finding::new(Level::Warn, "resend_without_key", message).setting(fix));
    }
    Ok(())
}
