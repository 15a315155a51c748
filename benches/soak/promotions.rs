//! Promotions of a standby under load: what was published that the promoted server does not have?
//!
//! Two relays read one table: one publishes what is committed (`local`), the control, and one what the standby has flushed
//! (`durability = "standby"`). Each time the standby stops receiving, the primary goes on for a while and is killed, and the standby is
//! promoted. Then the relays run on the promoted server, and `verify` compares there. In the end its words are compared with what
//! consumers have received.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use fastrand::Rng;
use outbox_testkit::consumer::Consumer;
use outbox_testkit::kafka::RealBroker;
use outbox_testkit::wait::until;
use serde_json::{Value, json};

use super::journal::Journal;
use super::options::Options;
use super::replicas::{CONFIG, Replicas, ask};
use load::Load;
use pair::{Pair, ROLE};
use tally::Tally;

mod load;
mod pair;
mod tally;

/// The relays, and lines of each: the control comes first.
pub const RELAYS: [(&str, &str); 2] = [("local", ""), ("kept", "durability = \"standby\"\n")];
const PARTITIONS: i32 = 3;
/// Longer than a relay takes to find a new server, its standby and its rows.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a comparison may take.
const LONGEST: Duration = Duration::from_secs(300);
/// How long the load lasts before the standby stops receiving, and how long until the primary is killed, in milliseconds.
const CALM: std::ops::Range<u64> = 50..600;
const AHEAD: std::ops::Range<u64> = 50..400;
/// A line is printed after so many.
const EACH: usize = 10;

/// What is the same on all servers.
struct Scene {
    dir: PathBuf,
    relay: PathBuf,
    broker: String,
    journal: Journal,
    consumers: Vec<Consumer>,
}

/// Plays it; what the program ends with.
pub async fn play(options: &Options) -> anyhow::Result<u8> {
    let dir = Path::new("target/soak").join(format!("promotions-{}", options.seed));
    std::fs::create_dir_all(&dir)?;
    let dir = std::fs::canonicalize(dir)?;
    let broker = RealBroker::start().await.context("Apache Kafka")?;
    let mut consumers = Vec::new();
    for (relay, _) in RELAYS {
        broker.create_topic(relay, PARTITIONS, &[]).await?;
        consumers.push(Consumer::start(&broker.bootstrap_servers(), relay).await?);
    }
    let (relay, servers) = (options.relay.clone(), broker.bootstrap_servers());
    let scene = Scene { dir, relay, broker: servers, journal: Journal::new(), consumers };
    let played = scene.play(options).await;
    std::fs::write(scene.dir.join("events.log"), scene.journal.text())?;
    let tally = played.with_context(|| format!("kept in {}", scene.dir.display()))?;
    let code = tally.tell(options.seed)?;
    if code == 0 {
        std::fs::remove_dir_all(&scene.dir)?;
    }
    broker.stop().await?;
    Ok(code)
}

impl Scene {
    async fn play(&self, options: &Options) -> anyhow::Result<Tally> {
        let mut random = Rng::with_seed(options.seed);
        let mut pair = Pair::start().await?;
        let version: String = pair.owner().await?.query_one("SHOW server_version", &[]).await?.get(0);
        println!(
            "seed {}, PostgreSQL {version}, {}: {} promotions",
            options.seed,
            options.relay.display(),
            options.promotions
        );
        let begun = now();
        let (mut tally, mut since) = (Tally::new(), begun.clone());
        for number in 1..=options.promotions {
            let next = now();
            pair = self
                .round(pair, &mut random, &mut tally, &since)
                .await
                .with_context(|| format!("promotion {number}"))?;
            tally.promotions = number;
            since = next;
            if number % EACH == 0 || number == options.promotions {
                println!("{}", tally.line());
            }
        }
        self.close(&pair, &mut tally, &begun).await?;
        pair.stop().await?;
        Ok(tally)
    }

    /// Load, a standby that falls behind, a killed primary, and a promotion.
    async fn round(&self, mut pair: Pair, random: &mut Rng, tally: &mut Tally, since: &str) -> anyhow::Result<Pair> {
        let begun = Instant::now();
        let replicas = self.start(&pair)?;
        let load = Load::start(&pair).await?;
        self.flows(&pair).await?;
        // What the promotion before has undone lies below the positions only now.
        self.compare(tally, since).await?;
        tokio::time::sleep(Duration::from_millis(random.u64(CALM))).await;
        let receiver = pair.freeze().await?;
        tokio::time::sleep(Duration::from_millis(random.u64(AHEAD))).await;
        pair.kill().await?;
        tally.written += load.stop().await?;
        replicas.stop().await?;
        let promoted = pair.fail_over(receiver).await?;
        self.journal.note(format!("promoted after {:.1} s", begun.elapsed().as_secs_f64()));
        Ok(promoted)
    }

    /// A replica of both relays on this server.
    fn start(&self, pair: &Pair) -> anyhow::Result<Replicas> {
        let (url, broker) = (pair.url(ROLE), &self.broker);
        let mut text = format!(
            "[postgres]\nurl = \"{url}\"\n[kafka]\nbootstrap_servers = \"{broker}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n"
        );
        for (relay, lines) in RELAYS {
            text.push_str(&format!(
                "[[relay]]\nname = \"{relay}\"\nstart = \"beginning\"\n{lines}[relay.source.stream]\ntable = \"public.bookings\"\n\
                 [relay.sink.kafka]\ntopic = \"{relay}\"\nkey = \"customer\"\npayload = {{ column = \"payload\" }}\n"
            ));
        }
        std::fs::write(self.dir.join(CONFIG), text)?;
        Replicas::start(1, &self.relay, &self.dir, &self.dir.join("out"), &self.journal)
    }

    /// Waits until both relays have passed a row that is committed now.
    async fn flows(&self, pair: &Pair) -> anyhow::Result<()> {
        let owner = pair.owner().await?;
        let marker = "INSERT INTO public.bookings (customer) VALUES ('marker') RETURNING created_at::text";
        let marker: String = owner.query_one(marker, &[]).await?.get(0);
        let passed = "SELECT count(*) = 2 FROM outbox.cursor WHERE position_created_at >= $1::text::timestamptz";
        until(PATIENCE, "both relays have passed a new row", async || {
            Ok(owner.query_one(passed, &[&marker]).await?.get(0))
        })
        .await
    }

    /// What `verify` says of each relay on the server that is the primary now.
    async fn compare(&self, tally: &mut Tally, since: &str) -> anyhow::Result<()> {
        for (number, (relay, _)) in RELAYS.into_iter().enumerate() {
            let args = ["verify", relay, "-o", "json", "--since", since, "--limit", "1000000"];
            let said = ask(&self.relay, &self.dir.join(CONFIG), &args, LONGEST).await?;
            ensure!(matches!(said.code, Some(0 | 3)), "verify {relay} ({:?}): {}", said.code, said.told);
            let document: Value = serde_json::from_str(&said.out)?;
            ensure!(document["differences_capped"] == json!(false), "verify {relay} names some differences only");
            let differences = document["differences"].as_array().cloned().unwrap_or_default();
            let of = |found: &Value, key: &str| found[key].as_str().unwrap_or_default().to_owned();
            let named = differences.iter().map(|found| (of(found, "kind"), of(found, "id"))).collect();
            tally.add(number, named);
        }
        Ok(())
    }

    /// Once more on the last server, until all has been delivered; then what consumers have received counts.
    async fn close(&self, pair: &Pair, tally: &mut Tally, begun: &str) -> anyhow::Result<()> {
        let replicas = self.start(pair)?;
        let load = Load::start(pair).await?;
        self.flows(pair).await?;
        tally.written += load.stop().await?;
        self.flows(pair).await?;
        self.compare(tally, begun).await?;
        let rows = pair.owner().await?.query("SELECT id::text FROM public.bookings", &[]).await?;
        let table: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        for (number, consumer) in self.consumers.iter().enumerate() {
            consumer.catch_up(PATIENCE).await?;
            let arrived: BTreeSet<String> = consumer
                .look(|received| received.partitions.values().flatten().map(|record| record.id.clone()).collect());
            tally.close(number, &table, &arrived);
        }
        replicas.stop().await
    }
}

/// A little before now, as `--since` has it: rows of this instant are among them.
fn now() -> String {
    (Utc::now() - TimeDelta::seconds(5)).to_rfc3339_opts(SecondsFormat::Micros, true)
}
