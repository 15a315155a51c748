//! The other guarantees, with shards.

use std::collections::BTreeSet;

use outbox_testkit::bookings::{self, Table};
use rustix::process::Signal;

use super::{Stage, by_key};
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

/// Waits until no cursor has anything left to do.
async fn idle(toml: &str) {
    eventually(PATIENCE * 4, async || {
        let (code, out, log) = outbox_relay(toml, &["status", "-o", "json"]).await;
        assert_eq!(code, Some(0), "{log}");
        let status: serde_json::Value = serde_json::from_str(&out).unwrap();
        status["cursors"].as_array().unwrap().iter().all(|cursor| cursor["backlog_rows"] == 0)
    })
    .await;
}

// Guarantee: shards.guarantees
#[tokio::test(flavor = "multi_thread")]
async fn shards_under_at_most_once_send_no_row_twice_and_list_what_may_be_missing() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[3]).await;
    let toml = stage.toml("relay", 3).replace("shards = 3", "shards = 3\nguarantee = \"at_most_once\"");
    let replica = |name: &str| Process::spawn(&toml, &["run", "--replica-id", name]);
    let mut replicas = [replica("r0"), replica("r1")];
    let writers = stage.load(Some(300.0)).await;
    stage.goes_on(200).await;
    for round in 0..4 {
        let index = round % 2;
        replicas[index].signal(Signal::KILL);
        replicas[index].wait().await;
        replicas[index] = replica(&format!("r{index}-{round}"));
        stage.goes_on(100).await;
    }
    writers.stop().await.unwrap();
    idle(&toml).await;
    // Rows in flight are passed already, and sent one by one.
    let in_flight = "SELECT count(*) FROM outbox.cursor WHERE token IS NOT NULL";
    eventually(PATIENCE * 6, async || stage.owner.query_one(in_flight, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    stage.consumer.catch_up(PATIENCE).await.unwrap();
    let committed = bookings::committed(&stage.owner).await.unwrap();
    let received = stage.consumer.stop().await.unwrap();
    let report = outbox_testkit::delivery::check(&committed, &by_key(&received), &received.gaps);
    assert!(report.phantom.is_empty() && report.out_of_order.is_empty() && report.duplicates() == 0, "{report:?}");
    let sql = "SELECT key[1] FROM outbox.claim WHERE state = 'unknown' AND relay ~ '^events#[012]$'";
    let listed: BTreeSet<String> = stage.owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let unlisted: Vec<_> = report.lost.iter().filter(|id| !listed.contains(*id)).collect();
    assert!(unlisted.is_empty(), "missing and not listed: {unlisted:?}");
    println!("{} rows, {} missing, {} listed", committed.len(), report.lost.len(), listed.len());
}

// Guarantee: shards.guarantees
#[tokio::test(flavor = "multi_thread")]
async fn shards_change_a_read_model_exactly_once_for_each_row_under_kills() {
    let stage = Stage::new(Table::PLAIN).await;
    stage
        .owner
        .batch_execute(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; \
             CREATE TABLE app.customers (customer text PRIMARY KEY, bookings bigint NOT NULL, last_id bigint NOT NULL); \
             GRANT SELECT, INSERT, UPDATE ON app.customers TO relay",
        )
        .await
        .unwrap();
    let toml = |role: &str| {
        let url = stage.database.url(role);
        format!(
            "[postgres]\nurl = \"{url}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"model\"\n\
             shards = 4\nshard_key = \"customer\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.sql]\n\
             statement = '''INSERT INTO app.customers AS c VALUES ($1, 1, $2) ON CONFLICT (customer) DO UPDATE \
             SET bookings = c.bookings + 1, last_id = excluded.last_id'''\nparameters = [\"customer\", \"id\"]\n"
        )
    };
    let (code, _, log) = outbox_relay(&toml("postgres"), &["migrate", "up", "--indexes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let mut replicas = [0, 1].map(|n| Process::spawn(&toml("relay"), &["run", "--replica-id", &format!("r{n}")]));
    let writers = stage.load(Some(100.0)).await;
    let counted = async || -> i64 {
        let sql = "SELECT COALESCE(sum(bookings), 0)::bigint FROM app.customers";
        stage.owner.query_one(sql, &[]).await.unwrap().get(0)
    };
    for round in 0..4 {
        let before = counted().await;
        eventually(PATIENCE * 6, async || counted().await > before + 50).await;
        let index = round % 2;
        replicas[index].signal(Signal::KILL);
        replicas[index].wait().await;
        replicas[index] = Process::spawn(&toml("relay"), &["run", "--replica-id", &format!("r{index}-{round}")]);
    }
    writers.stop().await.unwrap();
    let rows = i64::try_from(bookings::committed(&stage.owner).await.unwrap().len()).unwrap();
    eventually(PATIENCE * 4, async || counted().await >= rows).await;
    let differences = "WITH direct AS (SELECT customer, count(*), (array_agg(id ORDER BY created_at DESC, id DESC))[1] \
                       FROM public.bookings GROUP BY customer) SELECT count(*) FROM \
                       ((TABLE app.customers EXCEPT ALL TABLE direct) UNION ALL (TABLE direct EXCEPT ALL TABLE app.customers)) AS d";
    assert_eq!(stage.owner.query_one(differences, &[]).await.unwrap().get::<_, i64>(0), 0);
}
