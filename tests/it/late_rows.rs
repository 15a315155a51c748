//! Rows that become visible below the position of their cursor: with a column `txid` they come late and are not lost.

mod attached;
mod backlog;
mod endless;
mod max_hold;
mod operators;
mod plans;
mod restored;
mod sinks;
mod storm;
mod ways;

use std::time::Duration;

use tokio_postgres::Client;

use crate::support::outside::{get, listener, marked, printed, stdout_relay};
use crate::support::{
    Database, PATIENCE, Process, bookings, broker, database, eventually, kafka_relay, records, toml, unique,
};

/// `created_at` as the application sets it.
const OWN: &str = "timestamptz NOT NULL DEFAULT clock_timestamp()";
/// What makes the rows of a table that commit late found.
const SWEPT: &str = "ALTER TABLE public.bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                     CREATE INDEX bookings_txid ON public.bookings (txid, created_at, id)";
/// Longer than a late row takes to be found.
const LONG_ENOUGH: Duration = Duration::from_secs(3);

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// A table whose rows carry what the application says, and are swept.
async fn swept(database: &Database) -> Client {
    let owner = bookings(database, OWN).await;
    run(&owner, &format!("{SWEPT}; GRANT INSERT, SELECT ON public.bookings TO app")).await;
    owner
}

/// So many transactions that write nothing.
async fn transactions(client: &Client, count: u32) {
    run(client, "SET synchronous_commit TO off").await;
    let take = "PERFORM pg_catalog.pg_current_xact_id(); COMMIT;";
    run(client, &format!("DO $$ BEGIN FOR n IN 1..{count} LOOP {take} END LOOP; END $$")).await;
}

/// A row with this payload that the application dates so many minutes back.
async fn insert(client: &Client, minutes: i32, payload: &str) {
    let sql =
        "INSERT INTO public.bookings (created_at, payload) VALUES (clock_timestamp() - make_interval(mins => $1), $2)";
    client.execute(sql, &[&minutes, &payload]).await.unwrap();
}

/// A process whose relay `late` prints the table; `more` is added below `[[relay]]`.
fn printing(database: &Database, more: &str) -> Process {
    Process::spawn(&toml(database, "relay", None, &stdout_relay("late", more)), &["run"])
}

#[track_caller]
fn prints<'a>(process: &'a Process, ids: &'a [&'a str]) -> impl Future<Output = ()> + 'a {
    let comes = eventually(PATIENCE * 2, async || marked(process).len() >= ids.len());
    async move {
        // What has come until then tells more than that something has not.
        let _ = tokio::time::timeout(PATIENCE, comes).await;
        assert_eq!(marked(process), ids, "{}", process.log());
    }
}

/// How many rows of the cursor have been found late.
async fn late_rows(owner: &Client) -> i64 {
    let sql = "SELECT count(*) FROM outbox.dead_letter WHERE error ? 'late'";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

// Guarantee: late.delivered
#[tokio::test]
async fn row_dated_back_by_the_application_is_delivered_late_and_marked() {
    let (database, broker) = (database().await, broker().await);
    let owner = swept(&database).await;
    let (topic, servers) = (unique("late"), broker.bootstrap_servers());
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let process = Process::spawn(&toml(&database, "relay", Some(&servers), &kafka_relay("late", &topic, "")), &["run"]);
    let arrived = async |count: usize| {
        eventually(PATIENCE, async || records(&servers, &topic).await.len() >= count).await;
        records(&servers, &topic).await
    };
    insert(&owner, 0, "first").await;
    arrived(1).await;
    insert(&owner, 10, "dated back").await;
    insert(&owner, 0, "second").await;
    let all = arrived(3).await;
    let mut marks: Vec<_> =
        all.iter().map(|record| (record.text(), record.header("late"), record.header("replayed"))).collect();
    marks.sort();
    let late = ("dated back".to_owned(), Some("true"), None);
    assert_eq!(marks, [late, ("first".to_owned(), None, None), ("second".to_owned(), None, None)]);
    let metrics = get(&format!("{}/metrics", listener(&process).await)).await.1;
    assert!(metrics.lines().any(|line| line == "outbox_relay_late_rows_total{cursor=\"late\"} 1"), "{metrics}");
}

// Guarantee: late.idle
#[tokio::test]
async fn late_row_with_no_row_behind_it_reaches_an_idle_relay_within_seconds() {
    let database = database().await;
    let owner = swept(&database).await;
    let process = Process::spawn(&toml(&database, "relay", None, &stdout_relay("late", "")), &["run"]);
    insert(&owner, 0, "first").await;
    eventually(PATIENCE, async || printed(&process, "late") == ["1"]).await;
    tokio::time::sleep(Duration::from_secs(2)).await; // it rests by then
    insert(&owner, 10, "dated back").await;
    eventually(Duration::from_secs(3), async || printed(&process, "late") == ["1", "2"]).await;
}
