//! What `verify` compares: relays of the configuration, or a table and a topic that the arguments name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::side::Side;
use super::{Args, Trial};
use crate::cli::output::complain;
use crate::config::Config;
use crate::database::Session;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::prepare;
use crate::sink::kafka::Cluster;
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;
use crate::source::{RuleChoice, Stream, TableName, judge, table};
use crate::verify::record::{Place, Reading};
use crate::verify::topic::Topics;
use crate::verify::{Cursors, Keeps, Problem, Recordings, Subject};
use crate::{relay, sink};

/// Findings without which a table can be compared.
const READABLE: [&str; 5] = ["privilege_missing", "row_security", "table_kind", "column_missing", "column_type"];

pub(super) async fn all(config: Config, session: &Session, args: &Args) -> anyhow::Result<Vec<Side>> {
    if let (Some(name), Some(topic), Some(id)) = (&args.trial.table, &args.trial.topic, &args.trial.id) {
        return Ok(vec![Side::Topic(Box::new(on_trial(&config, session, (name, topic, id), &args.trial).await?))]);
    }
    let names: Vec<String> =
        args.relay.iter().map(|name| name.split('#').next().unwrap_or_default().to_owned()).collect();
    let config = config.only(&names)?;
    crate::migrate::require(session).await?;
    let mut subjects = Vec::new();
    for relays in config.relays.chunk_by(|one, other| one.relay == other.relay) {
        let Some(first) = relays.first() else { continue };
        match (&first.sink, &first.source) {
            (sink::Config::Kafka(kafka), crate::source::Config::Stream(_)) => {
                subjects.push(Side::Topic(Box::new(of_relay(&config, session, relays, kafka).await?)));
            }
            _ if args.relay.is_none() => {
                complain(format_args!("{}: left out: {}", first.relay, left_out(first)));
            }
            _ => subjects.push(Side::Recorded(Box::new(recorded(session, relays, args).await?))),
        }
    }
    if subjects.is_empty() {
        return Err(Problem::new(
            "no relay of the configuration publishes a stream to Kafka",
            "Name the relay to compare, or another --config.",
        )
        .into());
    }
    Ok(subjects)
}

/// Why a relay is not among those that are compared without being named.
fn left_out(relay: &relay::Config) -> String {
    let (name, kind) = (&relay.relay, relay.sink.kind());
    match relay.source {
        crate::source::Config::Stream(_) => {
            format!("it sends to {kind}: `outbox-relay verify {name}` compares it by itself")
        }
        _ => "its source is no stream".to_owned(),
    }
}

/// A relay that has no topic: what its cursors have recorded.
async fn recorded(session: &Session, relays: &[relay::Config], args: &Args) -> anyhow::Result<Recordings> {
    let relay = &relays[0];
    let (name, kind) = (&relay.relay, relay.sink.kind());
    if args.repair || args.follow {
        let (option, instead) = if args.repair {
            let instead = "Rows that came late are dead letters: `outbox-relay dead-letter redrive` sends them. To have others sent again, \
                           move the cursor back to before them: `outbox-relay cursor seek`.";
            ("--repair", instead)
        } else {
            (
                "--follow",
                "Leave it out, and run it again, from a timer for example: what was passed is compared each time.",
            )
        };
        return Err(Problem::new(
            format!("{name} sends to {kind}: {option} is for relays that publish to Kafka"),
            instead,
        )
        .into());
    }
    let shape = shape(session, relay).await?;
    if let Some(why) = relay.unaudited(shape.sweep.is_some()) {
        let what = format!(
            "{name} sends to {kind}, and what it passes is not recorded, so that there is nothing to compare with: {}",
            why.as_str()
        );
        return Err(Problem::new(what, why.fix()).into());
    }
    Ok(Recordings {
        cursors: cursors(relays),
        sink: kind,
        parts: relays.iter().map(|relay| shape.for_shard(relay.shard.as_ref())).collect(),
        keep: relay.audit.keep,
    })
}

/// The table of a relay, once it can be read.
async fn shape(session: &Session, relay: &relay::Config) -> anyhow::Result<Arc<Shape>> {
    match prepare::shape(session, &relay.source).await? {
        Ok(shape) => Ok(Arc::new(shape)),
        Err(Unready::Wrong { message, hint, .. }) => Err(Problem::new(message, hint).into()),
        Err(Unready::Waiting) => Err(Problem::new("the table cannot be read yet", "Try again.").into()),
    }
}

fn cursors(relays: &[relay::Config]) -> Cursors {
    let relay = &relays[0];
    let names = relays.iter().map(|relay| relay.name.clone()).collect();
    Cursors { relay: relay.relay.clone(), names, start: relay.start }
}

fn cluster(config: &Config) -> anyhow::Result<Arc<Cluster>> {
    let kafka = config.kafka.clone();
    let missing = || {
        Problem::new(
            "no Kafka is configured",
            "Set [kafka] bootstrap_servers, or OUTBOX_RELAY__KAFKA__BOOTSTRAP_SERVERS.",
        )
    };
    Ok(Arc::new(Cluster::new(kafka.ok_or_else(missing)?)))
}

async fn of_relay(
    config: &Config,
    session: &Session,
    relays: &[relay::Config],
    kafka: &sink::kafka::Config,
) -> anyhow::Result<Subject> {
    let relay = &relays[0];
    let shape = shape(session, relay).await?;
    let header = |name: &str| Place::Header(name.to_owned());
    let shared = if kafka.unordered || kafka.key.is_none() { Keeps::Nothing } else { Keeps::Key };
    let keeps = match (kafka.unordered, relays.len()) {
        (true, _) => Keeps::Nothing,
        (false, 2..) => shared,
        (false, _) => Keeps::Partition,
    };
    Ok(Subject {
        name: relay.relay.clone(),
        cluster: cluster(config)?,
        topics: Topics::of(&kafka.topic),
        reading: Reading {
            id: header("id"),
            created_at: Some(header("created_at")),
            relay: Some(("relay".to_owned(), vec![relay.relay.clone()])),
            ids: shape.id_type,
        },
        keeps,
        shared,
        parts: relays.iter().map(|relay| shape.for_shard(relay.shard.as_ref())).collect(),
        indexed: true,
        cursors: Some(cursors(relays)),
        grace: Duration::ZERO,
    })
}

async fn on_trial(
    config: &Config,
    session: &Session,
    (name, topic, id): (&str, &str, &Place),
    trial: &Trial,
) -> anyhow::Result<Subject> {
    let (schema, table) = name.split_once('.').unwrap_or(("public", name));
    let mut stream = Stream {
        table: TableName { schema: schema.to_owned(), name: table.to_owned() },
        id: trial.id_column.clone(),
        created_at: trial.created_at_column.clone(),
        horizon: RuleChoice::Auto,
        time_zone: None,
        latency_window: None,
        standbys: 0,
        max_hold: None,
        filter: BTreeMap::new(),
    };
    let found = match table::inspect(session, &stream).await {
        Ok(found) => found,
        Err(table::InspectError::Database(error)) => return Err(error.into()),
        Err(error) => return Err(Problem::new(error.to_string(), "Correct --table (schema.name).").into()),
    };
    if found.column(&stream.created_at).is_some_and(|column| column.type_name.starts_with("timestamp without")) {
        stream.time_zone = Some("UTC".to_owned());
    }
    let verdict = judge::judge(&found, &stream);
    if let Some(finding) = verdict.findings.iter().find(|finding| keeps_from_reading(finding)) {
        let columns = || "Name its columns: --id-column, --created-at-column.".to_owned();
        let fix = finding.fix_sql.clone().unwrap_or_else(columns);
        return Err(Problem::new(&finding.message, fix).into());
    }
    let shape: Shape = found.shape(&stream, &verdict);
    let columns = [stream.created_at.as_str(), stream.id.as_str()];
    Ok(Subject {
        name: stream.table.to_string(),
        cluster: cluster(config)?,
        topics: Topics::One(topic.to_owned()),
        reading: Reading {
            id: id.clone(),
            created_at: trial.created_at.clone(),
            relay: trial.relay_header.clone().map(|(name, value)| (name, vec![value])),
            ids: shape.id_type,
        },
        keeps: if trial.created_at.is_some() { Keeps::Key } else { Keeps::Nothing },
        shared: Keeps::Nothing,
        indexed: found.unordered_by(columns).next().is_none(),
        parts: vec![Arc::new(shape)],
        cursors: None,
        grace: trial.grace,
    })
}

fn keeps_from_reading(finding: &Finding) -> bool {
    finding.level == Level::Error && READABLE.contains(&finding.code)
}

/// What a failed question means.
pub(super) fn reading(error: &crate::database::Error) -> anyhow::Error {
    let hint = "GRANT SELECT on the table, and on outbox.cursor, outbox.operation, outbox.dead_letter, outbox.parked, outbox.claim and \
                outbox.audit_slice, to the role: `outbox-relay migrate up --relay-role ROLE` does the latter.";
    Problem::new(format!("cannot read what is compared: {error}"), hint).into()
}

/// What a failed repair means.
pub(super) fn writing(error: crate::database::Error) -> anyhow::Error {
    if error.state_class() == "42" {
        let hint = "GRANT INSERT, UPDATE ON outbox.dead_letter TO the relay's role, and INSERT (operator, verb, cursor, detail) ON \
                    outbox.operation: `outbox-relay migrate up --relay-role ROLE` does";
        return Problem::new(format!("cannot order the repair: {error}"), hint).into();
    }
    error.into()
}
