//! `check`: asks the real PostgreSQL and Kafka whether every relay can do its work, and says what fixes it.
//!
//! An error ends no other check: what is wrong with a table says nothing about a topic.

use std::sync::Arc;
use std::time::Instant;

use crate::database::{Error, Session, Sessions};
use crate::message::Field;
use crate::relay::Config;
use crate::relay::queue::actions;
use crate::relay::queue::requests;
use crate::sink::kafka::Cluster;
use crate::sink::{self, Failure};
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;

mod audit;
mod certificates;
mod collation;
mod cursors;
mod custom;
mod email;
mod hindrances;
mod in_flight;
mod memory;
mod notify;
mod partitions;
mod roles;
mod schema;
mod secrets;
mod server;
mod sources;
mod standby;
mod statements;
mod topic;
mod transport;

use sources::rows;

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
                Err(error) => findings.push(Finding::database(&error)),
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
        Err(error) => found.push(Finding::database(&error)),
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
        Err(error) => found.push(Finding::database(&error)),
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
        found.extend(schema::findings(cluster, config, rows.map(|(_, readable)| &readable.shape)).await);
    }
    found.extend(in_flight::finding(relay));
    found.extend(secrets::uncontacted(relay));
    found.extend(secrets::usable(relay));
    found.extend(certificates::of_receiver(relay));
    found.extend(secrets::token(relay).await);
    match &relay.sink {
        sink::Config::Email(config) => found.extend(email::server(relay, config).await),
        sink::Config::Custom(config) => found.push(custom::receiver(relay, config).await),
        // Asked above, or not to be asked.
        sink::Config::Kafka(_) | sink::Config::Http(_) | sink::Config::Sms(_) | sink::Config::Webhook(_) => {}
        // They have no receiver but this database and this machine.
        sink::Config::Sql(_) | sink::Config::Stdout(_) | sink::Config::Command(_) => {}
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
