//! A rolling update under load, by real processes and the signals that Kubernetes sends: first the next schema, then each
//! replica replaced by one that is ready before the old one is told to end. Nothing is lost, reordered or repeated, and
//! nobody waits long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outbox_relay::migrate::{self, VERSION};
use outbox_testkit::bookings::{self, Load, Table, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::delivery::{Verdict, check, verdict};
use rustix::process::Signal;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::support::outside::{get, lines, listener};
use crate::support::{Database, PATIENCE, Process, broker, database, eventually, kafka_relay, toml, unique};

/// Two cursors on one table: holders of both are replaced.
const CURSORS: [&str; 2] = ["left", "right"];

/// What a next version would bring: it only expands, and says that programs of this version go on.
fn next_migration() -> String {
    format!(
        "BEGIN;
         SET LOCAL lock_timeout = '5s';
         ALTER TABLE outbox.cursor ADD COLUMN next_cursor jsonb;
         ALTER TABLE outbox.control ADD COLUMN next_control text;
         ALTER TABLE outbox.cursor_status ADD COLUMN next_status timestamptz;
         ALTER TABLE outbox.dead_letter ADD COLUMN next_letter bigint;
         CREATE TABLE outbox.next (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cursor text NOT NULL);
         INSERT INTO outbox.version (version, oldest_binary) VALUES ({}, {VERSION});
         COMMIT;",
        VERSION + 1
    )
}

/// The last migration taken back and made again, with its grants, as one change: what a turn meets of either.
fn back_and_forth() -> String {
    let (back, forth) = (migrate::down_sql(VERSION, VERSION - 1), migrate::up_sql(VERSION - 1));
    let grants = migrate::relay_grants("relay", &[]);
    format!(
        "{}{}{grants}COMMIT;",
        back.replace("COMMIT;\n", ""),
        forth.replace("BEGIN;\n", "").replace("COMMIT;\n", "")
    )
}

/// A deployment: its replicas, and who looks at it from outside.
struct Deployment {
    database: Database,
    owner: Client,
    consumers: Vec<Consumer>,
    toml: String,
    replicas: Vec<Process>,
}

impl Deployment {
    /// Three replicas, all ready.
    async fn start() -> Self {
        let (database, broker) = (database().await, broker().await);
        let owner = database.connect("postgres").await;
        Table::PLAIN.create(&owner).await.unwrap();
        let servers = broker.bootstrap_servers();
        let (mut consumers, mut relays) = (Vec::new(), String::new());
        for cursor in CURSORS {
            let topic = unique("rolling");
            broker.create_topic(&topic, 3, &[]).await.unwrap();
            consumers.push(Consumer::start(&servers, &topic).await.unwrap());
            // A busy machine may take longer than a turn's usual 5 s; what is cut then comes again, and proves nothing here.
            let deadline = "[relay.turn]\ndeadline = \"60s\"\n";
            relays.push_str(&format!("{}{deadline}", kafka_relay(cursor, &topic, "")));
        }
        let toml = toml(&database, "relay", Some(&servers), &relays);
        let mut deployment = Self { database, owner, consumers, toml, replicas: Vec::new() };
        for n in 0..3 {
            let replica = deployment.ready_replica(&format!("old-{n}")).await;
            deployment.replicas.push(replica);
        }
        deployment
    }

    /// A new replica, when its readiness probe succeeds.
    async fn ready_replica(&self, name: &str) -> Process {
        let process = Process::spawn(&self.toml, &["run", "--replica-id", name]);
        let url = format!("{}/readyz", listener(&process).await);
        eventually(PATIENCE * 6, async || get(&url).await.0 == 200).await;
        process
    }

    /// Writers, when their first rows have come through.
    async fn load(&self) -> Writers {
        let pause = Duration::from_millis(50);
        let load = Load { rows_per_second: Some(300.0), payload: 100..=2_000, longest_pause: pause, ..Load::default() };
        let writers = Writers::start(&self.database.url("app"), load).await.unwrap();
        eventually(PATIENCE * 6, async || writers.committed() > 500).await;
        self.goes_on().await;
        writers
    }

    /// Replaces one replica as a rollout does: the new one is ready, then the old one gets SIGTERM and ends by itself.
    async fn replace(&mut self, index: usize) -> Duration {
        let new = self.ready_replica(&format!("new-{index}")).await;
        let mut old = std::mem::replace(&mut self.replicas[index], new);
        let told = Instant::now();
        old.signal(Signal::TERM);
        assert_eq!(old.wait().await, Some(0), "{}", old.log());
        assert_undisturbed(&old);
        told.elapsed()
    }

    /// Waits until every cursor has advanced over rows that are younger than this call.
    async fn goes_on(&self) {
        let now = "SELECT clock_timestamp()::text";
        let now: String = self.owner.query_one(now, &[]).await.unwrap().get(0);
        let behind = "SELECT count(*) FROM outbox.cursor WHERE position_created_at > $1::text::timestamptz";
        eventually(PATIENCE * 6, async || {
            let on: i64 = self.owner.query_one(behind, &[&now]).await.unwrap().get(0);
            on == CURSORS.len() as i64
        })
        .await;
    }

    /// Waits for everything, and compares: without faults nothing may come twice.
    async fn settle(self, writers: Writers) {
        let written = writers.stop().await.unwrap();
        let committed = bookings::committed(&self.owner).await.unwrap();
        written.agrees_with(&committed).unwrap();
        for consumer in self.consumers {
            eventually(PATIENCE * 4, async || consumer.count() >= committed.len()).await;
            consumer.catch_up(PATIENCE).await.unwrap();
            let received = consumer.stop().await.unwrap();
            let report = check(&committed, &received.streams(), &received.gaps);
            let waits = received.partitions.values().flatten();
            let longest = waits.filter_map(|record| Some(record.received_at.since(record.created_at?))).max();
            println!("{} rows, {} duplicates, longest way {longest:?}", committed.len(), report.duplicates());
            assert_eq!(verdict(&committed, &[&report], false), Verdict::Pass, "{report:?}");
            assert!(report.strayed.is_empty(), "{report:?}");
        }
        for mut replica in self.replicas {
            replica.signal(Signal::TERM);
            assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
        }
    }
}

/// Nothing that a change of the schema can do to a replica: a deadlock, a plan or a name that is no longer right.
fn assert_undisturbed(process: &Process) {
    let disturbed = |line: &serde_json::Value| {
        let text = line.to_string();
        (line["level"] == "ERROR" && line["target"] != "librdkafka")
            || ["(40P01)", "(42", "(0A000)"].iter().any(|code| text.contains(code))
    };
    let disturbed: Vec<_> = lines(process).into_iter().filter(disturbed).collect();
    assert!(disturbed.is_empty(), "{disturbed:#?}");
}

/// Samples the lag, as the contract defines it, until it is asked for the samples.
struct Sampler {
    end: Arc<AtomicBool>,
    task: JoinHandle<Vec<f64>>,
}

impl Sampler {
    async fn start(database: &Database) -> Self {
        let client = database.connect("postgres").await;
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let lag = "SELECT COALESCE(max(extract(epoch FROM clock_timestamp() - (SELECT b.created_at \
                   FROM public.bookings AS b WHERE (b.created_at, b.id) > (c.position_created_at, c.position_id::bigint) \
                   ORDER BY b.created_at, b.id LIMIT 1))), 0)::float8 FROM outbox.cursor AS c";
        let task = tokio::spawn(async move {
            let mut samples = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                samples.push(client.query_one(lag, &[]).await.unwrap().get(0));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            samples
        });
        Self { end, task }
    }

    /// The samples, smallest first.
    async fn stop(self) -> Vec<f64> {
        self.end.store(true, Ordering::Relaxed);
        let mut samples = self.task.await.unwrap();
        samples.sort_by(f64::total_cmp);
        samples
    }
}

// Guarantee: failures.rolling-update
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_update_with_its_migration_under_load_loses_reorders_and_repeats_nothing() {
    let mut deployment = Deployment::start().await;
    let writers = deployment.load().await;
    let sampler = Sampler::start(&deployment.database).await;

    let begun = Instant::now();
    deployment.owner.batch_execute(&next_migration()).await.unwrap();
    println!("migration {} under load: {:?}", VERSION + 1, begun.elapsed());
    deployment.goes_on().await; // three replicas that began on the schema before
    for index in 0..deployment.replicas.len() {
        let drained = deployment.replace(index).await;
        println!("replica {index} replaced, the old one ended {drained:?} after SIGTERM");
        deployment.goes_on().await; // some that began before, some after
    }
    println!("rolled in {:?}", begun.elapsed());
    deployment.replicas.iter().for_each(assert_undisturbed);

    let lags = sampler.stop().await;
    let (median, worst) = (lags[lags.len() / 2], lags[lags.len() - 1]);
    println!("lag by {} samples: median {median:.3} s, worst {worst:.3} s (goal 2 s)", lags.len());
    assert!(worst < PATIENCE.as_secs_f64(), "lag {worst} s");
    deployment.settle(writers).await;
}

// Guarantee: failures.migration
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_taken_back_and_made_again_under_load_disturbs_no_turn() {
    let deployment = Deployment::start().await;
    let writers = deployment.load().await;
    for _ in 0..5 {
        let begun = Instant::now();
        deployment.owner.batch_execute(&back_and_forth()).await.unwrap();
        println!("back and forth under load: {:?}", begun.elapsed());
        deployment.goes_on().await;
    }
    deployment.replicas.iter().for_each(assert_undisturbed);
    deployment.settle(writers).await;
}
