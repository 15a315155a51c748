//! What `verify` and the audit name, beside what is known to be lost.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;
use tokio_postgres::Client;

use super::Scene;
use super::plants::{Copied, Loss};
use super::tables::{HASTY, RELAYS, STORM, table, topic};
use super::topics::{Arrival, Topics};
use crate::soak::kinds::Plant;
use crate::soak::replicas::{CONFIG, ask};

/// How long a comparison may take.
const LONGEST: Duration = Duration::from_secs(300);
/// More differences than there are.
const LIMIT: &str = "1000000";
/// The configuration that leads to a copy of the topic.
const OF_COPY: &str = "copy.toml";

/// A relay, and the id of a row.
type Row = (&'static str, String);

/// A loss, and how it was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was lost.
    pub loss: Loss,
    /// After how many seconds `verify` had named all of its ids.
    pub by_verify: Option<f64>,
    /// After how many seconds the audit had found all of them late.
    pub by_audit: Option<f64>,
    /// Its rows have been delivered as if nothing had been done.
    pub is_void: bool,
    named: BTreeSet<String>,
    late: BTreeSet<String>,
}

/// All that was found so far.
#[derive(Debug, Default)]
pub struct Findings {
    /// What was planted.
    pub losses: Vec<Found>,
    /// How often a table was compared with its topic, and how often of these in rounds in which nothing was planted.
    pub comparisons: [usize; 2],
    /// What was named and is not so, in rounds in which something was planted, and in others.
    pub alarms: [Vec<String>; 2],
    /// Rows that came more than once, as `verify` says.
    pub twice: BTreeSet<Row>,
    /// Rows that the relay which waits for no transaction has lost besides, and that were found.
    pub unplanned: BTreeSet<Row>,
    /// What breaks a promise.
    pub failures: Vec<String>,
    /// Named by either, and not planted: what it is turns out in the end.
    open: BTreeSet<Row>,
}

impl Found {
    /// Whether the audit of a running relay can tell: the rows are below the position, and their slice has not got them.
    pub fn is_for_the_audit(&self) -> bool {
        !matches!(
            self.loss.kind,
            Plant::TopicCopy
                | Plant::CursorMoved
                | Plant::ProgressTouched
                | Plant::LetterDeleted
                | Plant::SlicesDeleted
        )
    }

    /// Whether either has named all of it.
    pub fn is_found(&self) -> bool {
        self.by_verify.is_some() || self.by_audit.is_some()
    }
}

impl Findings {
    /// Takes in what was planted.
    pub fn plant(&mut self, loss: Loss) {
        let (named, late) = Default::default();
        self.losses.push(Found { loss, by_verify: None, by_audit: None, is_void: false, named, late });
    }

    /// Whether the audit has something left to find.
    pub fn audit_is_open(&self) -> bool {
        self.losses.iter().any(|found| found.is_for_the_audit() && found.by_audit.is_none())
    }

    /// Compares a table with its topic, or with a copy of it; gives the ids that the topic lacks.
    pub async fn compare(
        &mut self,
        scene: &Scene,
        topics: &Topics,
        relay: &'static str,
        copy: Option<&Copied>,
        is_quiet: bool,
    ) -> anyhow::Result<BTreeSet<String>> {
        let differences = differences(scene, relay, copy).await?;
        let now = clock(&scene.access.owner().await?).await?;
        self.comparisons[0] += 1;
        self.comparisons[1] += usize::from(is_quiet);
        topics.catch_up().await?;
        let (arrived, mut lacking) = (topics.arrived(relay), BTreeSet::new());
        for (kind, id) in differences {
            let arrival = arrived.get(&id).copied().unwrap_or_default();
            let is_lacking = kind == "not_in_topic" || kind == "not_delivered";
            if is_lacking {
                lacking.insert(id.clone());
            }
            if is_lacking && self.name(relay, copy, &id, now) {
                continue;
            }
            if kind == "twice" && arrival.records > 1 {
                self.twice.insert((relay, id));
            } else if is_lacking && arrival.records == 0 {
                self.open.insert((relay, id));
            } else {
                let what =
                    format!("verify {relay}: {kind} {id}, of which {} records are in the topic", arrival.records);
                self.alarms[usize::from(is_quiet)].push(what);
            }
        }
        Ok(lacking)
    }

    /// Whether a row that the topic lacks is planted; it has been named by now.
    fn name(&mut self, relay: &str, copy: Option<&Copied>, id: &str, now: f64) -> bool {
        let of = |found: &&mut Found| {
            let is_there = found.loss.copy.is_none() || found.loss.copy.as_ref() == copy;
            found.loss.relay == relay && is_there && found.loss.ids.iter().any(|own| own == id)
        };
        let Some(found) = self.losses.iter_mut().find(of) else { return false };
        found.named.insert(id.to_owned());
        if found.named.len() == found.loss.ids.len() {
            found.by_verify.get_or_insert(now - found.loss.at);
        }
        true
    }

    /// Takes in what the audit has found late.
    pub async fn letters(&mut self, owner: &Client) -> anyhow::Result<()> {
        let sql = "SELECT cursor, message_id, extract(epoch FROM dead_lettered_at)::float8 FROM outbox.dead_letter \
                   WHERE error ->> 'late' IS NOT NULL ORDER BY id";
        for row in owner.query(sql, &[]).await? {
            let (cursor, id, at): (String, String, f64) = (row.get(0), row.get(1), row.get(2));
            let name = cursor.split('#').next().unwrap_or_default();
            let relay = RELAYS.into_iter().find(|relay| *relay == name).unwrap_or(STORM);
            let of = |found: &&mut Found| {
                found.loss.relay == relay && found.loss.copy.is_none() && found.loss.ids.contains(&id)
            };
            let Some(found) = self.losses.iter_mut().find(of) else {
                self.open.insert((relay, id));
                continue;
            };
            found.late.insert(id);
            if found.late.len() == found.loss.ids.len() {
                found.by_audit.get_or_insert(at - found.loss.at);
            }
        }
        Ok(())
    }

    /// Compares all once more, and with what is really lost: by what the tables have, and what has arrived.
    pub async fn close(&mut self, scene: &Scene, topics: &Topics, owner: &Client) -> anyhow::Result<()> {
        for relay in RELAYS {
            let named = self.compare(scene, topics, relay, None, true).await?;
            let arrived = topics.arrived(relay);
            let sql = format!("SELECT id::text FROM public.{}", table(relay));
            let rows: Vec<String> = owner.query(&sql, &[]).await?.iter().map(|row| row.get(0)).collect();
            let lost: BTreeSet<String> = rows.into_iter().filter(|id| !arrived.contains_key(id)).collect();
            for id in lost.difference(&named) {
                self.failures.push(format!("row {id} of {relay} is lost, and verify does not name it in the end"));
            }
            for id in named.difference(&lost) {
                self.alarms[1].push(format!("verify {relay}: {id} is missing in the end, and has arrived"));
            }
            self.settle(relay, &lost, &arrived);
        }
        for found in self.losses.iter().filter(|found| !found.is_found() && !found.is_void) {
            let Loss { kind, relay, ids, .. } = &found.loss;
            self.failures.push(format!("{} of {relay} was not found: {}", kind.word(), ids.join(", ")));
        }
        Ok(())
    }

    /// What the rows of a relay are that were named or lost, and not planted.
    fn settle(&mut self, relay: &'static str, lost: &BTreeSet<String>, arrived: &HashMap<String, Arrival>) {
        let came = |id: &String| arrived.get(id).is_some_and(|arrival| arrival.unmarked > 0);
        let mut planted = BTreeSet::new();
        for found in self.losses.iter_mut().filter(|found| found.loss.relay == relay && found.loss.copy.is_none()) {
            found.is_void = found.loss.ids.iter().any(came);
            planted.extend(found.loss.ids.iter().cloned());
        }
        self.open.extend(lost.difference(&planted).map(|id| (relay, id.clone())));
        for row in self.open.iter().filter(|(of, _)| *of == relay) {
            let (_, id) = row;
            if came(id) {
                self.alarms[1].push(format!("{relay}: {id} was called missing or late, and came by itself"));
            } else if relay == HASTY {
                self.unplanned.insert(row.clone());
            } else {
                self.failures.push(format!("row {id} of {relay} was lost, and not on purpose"));
            }
        }
    }
}

/// What `verify` names: kind and id.
async fn differences(scene: &Scene, relay: &str, copy: Option<&Copied>) -> anyhow::Result<Vec<(String, String)>> {
    let mut config = scene.dir.join(CONFIG);
    let mut args = vec!["verify", relay, "-o", "json", "--since", scene.begun.as_str(), "--limit", LIMIT];
    if let Some(Copied { topic: copied, until }) = copy {
        let own = format!("topic = \"{}\"", topic(&scene.access, STORM));
        let text = std::fs::read_to_string(&config)?.replace(&own, &format!("topic = \"{copied}\""));
        config = scene.dir.join(OF_COPY);
        std::fs::write(&config, text)?;
        args.extend(["--until", until.as_str()]);
    }
    let said = ask(&scene.relay, &config, &args, LONGEST).await?;
    ensure!(matches!(said.code, Some(0 | 3)), "outbox-relay {} ({:?}): {}", args.join(" "), said.code, said.told);
    let document: Value = serde_json::from_str(&said.out)?;
    ensure!(document["differences_capped"] == false, "verify {relay} names some of the differences only");
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let found = document["differences"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(found.iter().map(|found| (text(found, "kind"), text(found, "id"))).collect())
}

/// The database's clock, in seconds since 1970.
async fn clock(owner: &Client) -> anyhow::Result<f64> {
    Ok(owner.query_one("SELECT extract(epoch FROM clock_timestamp())::float8", &[]).await?.get(0))
}
