//! Relays that have nothing to do look only for the newest row: what that must not miss, and what it costs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use outbox_testkit::postgres::{Options, Postgres};
use serde_json::Value;
use tokio_postgres::Client;

use crate::support::outside::{get, halted, listener, printed, stdout_relay};
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

mod plans;
mod tables;

const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";
/// Longer than a relay takes to rest, or to be told something while it does.
const RESTED: Duration = Duration::from_secs(2);

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

async fn prints(process: &Process, relay: &str, ids: &[&str]) {
    eventually(PATIENCE, async || printed(process, relay).len() >= ids.len()).await;
    assert_eq!(printed(process, relay), ids);
}

/// Waits until the relay's gauge has this value.
async fn shows(url: &str, gauge: &str) {
    eventually(PATIENCE, async || get(&format!("{url}/metrics")).await.1.lines().any(|line| line == gauge)).await;
}

/// A process with this relay that has printed row 1 and found nothing to do for so long that it rests.
async fn resting(database: &Database, owner: &Client, role: &str) -> Process {
    let process = Process::spawn(&toml(database, role, None, &stdout_relay("idle", "")), &["run"]);
    run(owner, INSERT).await;
    prints(&process, "idle", &["1"]).await;
    tokio::time::sleep(RESTED).await;
    process
}

#[tokio::test]
async fn a_relay_that_has_passed_its_checks_does_not_wait_for_the_next_look() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, INSERT).await;
    let relays = stdout_relay("ready", "[relay.poll]\nmin = \"60s\"\nmax = \"60s\"\n");
    let process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    prints(&process, "ready", &["1"]).await;
}

#[tokio::test]
async fn rows_that_keep_coming_make_turns_no_more_often_than_the_shortest_pause() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relays = stdout_relay("paced", "[relay.poll]\nmin = \"2s\"\nmax = \"2s\"\n");
    let process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    let begun = Instant::now();
    let mut rows = 0;
    while begun.elapsed() < Duration::from_secs(6) {
        run(&owner, INSERT).await;
        rows += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    eventually(PATIENCE, async || printed(&process, "paced").len() == rows).await;
    let metrics = get(&format!("{}/metrics", listener(&process).await)).await.1;
    let turns = "outbox_relay_turns_total{cursor=\"paced\",result=\"relayed\"} ";
    let turns: u64 = metrics.lines().find_map(|line| line.strip_prefix(turns)).unwrap().parse().unwrap();
    assert!(turns <= 1 + begun.elapsed().as_secs() / 2, "{turns} turns in {:?}", begun.elapsed());
}

// Guarantee: delivery.idle-late-commit
#[tokio::test]
async fn a_row_committed_late_below_a_newer_one_reaches_an_idle_relay_in_order() {
    for role in ["relay", "relay_stats"] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let process = resting(&database, &owner, role).await;
        let url = listener(&process).await;
        let late = database.connect("app").await;
        run(&late, &format!("BEGIN; {INSERT}")).await;
        run(&owner, INSERT).await;
        // The newest row does not change any more, and it must not rest at it.
        shows(&url, "outbox_relay_cursor_held{cursor=\"idle\"} 1").await;
        tokio::time::sleep(RESTED).await;
        assert_eq!(printed(&process, "idle"), ["1"]);
        run(&late, "COMMIT").await;
        prints(&process, "idle", &["1", "2", "3"]).await;
        shows(&url, "outbox_relay_cursor_held{cursor=\"idle\"} 0").await;
    }
}

#[tokio::test]
async fn a_writer_that_is_seen_while_nothing_is_there_to_do_holds_no_row_that_it_cannot_write_below() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let process = resting(&database, &owner, "relay").await;
    let late = database.connect("app").await;
    run(&late, &format!("BEGIN; {INSERT}")).await;
    tokio::time::sleep(RESTED).await;
    // It began before this row: the row waits for it, and both come in order when it has ended.
    run(&owner, INSERT).await;
    run(&late, "COMMIT").await;
    prints(&process, "idle", &["1", "2", "3"]).await;
}

#[tokio::test]
async fn operators_reach_a_relay_that_rests() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let process = resting(&database, &owner, "relay").await;
    let url = listener(&process).await;
    let owners = toml(&database, "postgres", None, &stdout_relay("idle", ""));
    let verb = async |args: &[&str]| {
        let (code, out, err) = outbox_relay(&owners, args).await;
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
    };
    verb(&["cursor", "pause", "idle"]).await;
    shows(&url, "outbox_relay_cursor_paused{cursor=\"idle\"} 1").await;
    run(&owner, INSERT).await;
    tokio::time::sleep(RESTED).await;
    assert_eq!(printed(&process, "idle"), ["1"]);
    verb(&["cursor", "resume", "idle"]).await;
    prints(&process, "idle", &["1", "2"]).await;
    tokio::time::sleep(RESTED).await;
    verb(&["cursor", "seek", "idle", "--beginning", "--yes"]).await;
    prints(&process, "idle", &["1", "2", "1", "2"]).await;
}

#[tokio::test]
async fn no_row_is_published_under_a_rule_that_changed_while_the_relay_rested() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let process = resting(&database, &owner, "relay").await;
    run(&owner, "GRANT INSERT (created_at) ON bookings TO app; ALTER TABLE bookings ALTER created_at DROP DEFAULT")
        .await;
    // Rows stamped within a second of the change are judged by the rule before.
    tokio::time::sleep(RESTED).await;
    run(&owner, "INSERT INTO bookings (created_at) VALUES (clock_timestamp())").await;
    halted(&owner, "idle").await;
    assert_eq!(printed(&process, "idle"), ["1"]);
}

// Guarantee: delivery.idle-cost
#[tokio::test]
async fn many_cursors_that_rest_use_no_transaction_ids_write_no_wal_and_keep_their_figures_fresh() {
    // A cluster of its own: ids and WAL are counted for all of it. It serves no standby, for which its background writer would
    // write down now and then which transactions run, at the latest half a minute after a change.
    let settings = [("autovacuum", "off"), ("wal_level", "minimal"), ("max_wal_senders", "0")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let postgres = Postgres::start(Options { settings, ..Options::default() }).await.unwrap();
    prepare(&postgres).await;
    let database = Database { name: "template_outbox".to_owned(), postgres: Box::leak(Box::new(postgres)) };
    let owner = bookings(&database, CLOCK).await;
    run(&owner, INSERT).await;
    let relays: String = (0..50).map(|n| stdout_relay(&format!("c{n}"), "")).collect();
    let process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    let url = listener(&process).await;
    for n in 0..50 {
        prints(&process, &format!("c{n}"), &["1"]).await;
    }
    let observed = async || {
        let (_, text) = get(&format!("{url}/metrics")).await;
        let gauges =
            text.lines().filter_map(|line| line.strip_prefix("outbox_relay_cursor_observed_timestamp_seconds"));
        let observed: HashMap<String, f64> = gauges
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(cursor, at)| (cursor.to_owned(), at.parse().unwrap()))
            .collect();
        observed
    };
    eventually(PATIENCE, async || observed().await.len() == 50).await;
    run(&owner, "CHECKPOINT").await;
    let used = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, pg_current_wal_insert_lsn()::text";
    let used = async || {
        let row = owner.query_one(used, &[]).await.unwrap();
        (row.get::<_, String>(0), row.get::<_, String>(1))
    };
    let looked = async || {
        let seen = observed().await;
        eventually(PATIENCE * 2, async || {
            let now = observed().await;
            seen.iter().all(|(cursor, at)| now[cursor] > *at)
        })
        .await;
    };
    // What the last turns write is behind everybody's next look.
    looked().await;
    let before = used().await;
    looked().await;
    assert_eq!(used().await, before);
    let (_, text) = get(&format!("{url}/metrics")).await;
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("outbox_relay_cursor_lag_seconds{") && line.ends_with(" 0"))
            .count(),
        50
    );
}

// Guarantee: delivery.fair-pool
#[tokio::test]
async fn sixty_busy_cursors_on_a_pool_of_four_connections_have_equal_shares_and_all_finish() {
    const ROWS: i64 = 3_000;
    let database = database().await;
    let owner = database.connect("postgres").await;
    let mut relays = String::new();
    for table in ["a", "b", "c"] {
        let sql = format!(
            "CREATE TABLE {table} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}); \
             CREATE INDEX ON {table} (created_at, id); GRANT SELECT ON {table} TO relay"
        );
        run(&owner, &sql).await;
        for n in 0..20 {
            let relay = stdout_relay(&format!("{table}{n}"), "").replace("public.bookings", &format!("public.{table}"));
            relays.push_str(&format!("{relay}[relay.turn]\nrows = 50\n"));
        }
    }
    let config = toml(&database, "relay", None, &relays).replacen("\n", "\npool_size = 4\n", 1);
    let process = Process::spawn(&config, &["run"]);
    eventually(PATIENCE * 2, async || process.log().matches("\"relay ready\"").count() == 60).await;
    let fill = |table| format!("INSERT INTO {table} SELECT FROM generate_series(1, {ROWS}); ");
    run(&owner, &format!("BEGIN; {}{}{}COMMIT", fill("a"), fill("b"), fill("c"))).await;
    let positions = async || {
        let sql = "SELECT COALESCE(position_id::bigint, 0) FROM outbox.cursor ORDER BY 1";
        owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect::<Vec<i64>>()
    };
    // Each turn is one share: when the first is through, nobody is far behind.
    let mut halfway = Vec::new();
    eventually(PATIENCE * 6, async || {
        let now = positions().await;
        if halfway.is_empty() && now[30] >= ROWS / 2 {
            halfway.clone_from(&now);
        }
        now[0] == ROWS
    })
    .await;
    assert!(halfway[0] * 2 >= halfway[30], "the slowest has less than half of the median: {halfway:?}");
    let mut printed: HashMap<String, Vec<String>> = HashMap::new();
    for line in process.out().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        printed.entry(text("relay")).or_default().push(text("id"));
    }
    let all: Vec<String> = (1..=ROWS).map(|id| id.to_string()).collect();
    assert_eq!(printed.len(), 60);
    assert!(printed.values().all(|ids| *ids == all), "each cursor delivers every row once, in order");
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' AND datname = current_database()";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 4);
}
