//! `durability = "standby"`: nothing is delivered that a failover to the standby undoes.

use outbox_testkit::postgres::{Options, Postgres};
use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::Client;

use crate::support::outside::{finding, json, printed, stdout_relay};
use crate::support::relays::toml_of;
use crate::support::servers::prepare;
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

const TABLE: &str = "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
     created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL DEFAULT 'c', payload text); \
     CREATE INDEX ON public.bookings (created_at, id); GRANT SELECT ON public.bookings TO relay, relay_stats";
const DATABASE: &str = "template_outbox";

/// A primary with the table.
async fn primary() -> (Postgres, Client) {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let owner = postgres.connect("postgres", DATABASE).await.unwrap();
    owner.batch_execute(TABLE).await.unwrap();
    (postgres, owner)
}

async fn insert(owner: &Client, rows: usize) {
    let sql = format!("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, {rows})");
    owner.batch_execute(&sql).await.unwrap();
}

/// A relay that waits for this many standbys.
fn waiting(name: &str, durability: &str) -> String {
    let relay = stdout_relay(name, "");
    relay.replacen(&format!("name = \"{name}\""), &format!("name = \"{name}\"\ndurability = {durability}"), 1)
}

/// The process by which a standby receives the log.
async fn receiver(standby: &Postgres) -> Pid {
    let client = standby.connect("postgres", DATABASE).await.unwrap();
    let pid: i32 = client.query_one("SELECT pid FROM pg_stat_wal_receiver", &[]).await.unwrap().get(0);
    Pid::from_raw(pid).unwrap()
}

// Guarantee: horizon.standby
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_delivered_when_the_standby_has_flushed_them_and_no_failover_undoes_them() {
    let (mut postgres, owner) = primary().await;
    let mut standby = postgres.standby("copy").await.unwrap();
    let relays = stdout_relay("local", "") + &waiting("kept", "\"standby\"");
    let text = toml_of(&postgres.url("relay_stats", DATABASE), None, &relays);
    let process = Process::spawn(&text, &["run"]);
    let arrived = |relay: &str| printed(&process, relay).len();
    insert(&owner, 10).await;
    eventually(PATIENCE, async || arrived("local") == 10 && arrived("kept") == 10).await;

    let frozen = receiver(&standby).await;
    kill_process(frozen, Signal::STOP).unwrap();
    insert(&owner, 10).await;
    eventually(PATIENCE, async || arrived("local") == 20).await;
    let reason = async || {
        let status = json(&outbox_relay(&text, &["status", "kept", "-o", "json"]).await.1);
        status["cursors"][0]["horizon"]["held_by"][0].clone()
    };
    eventually(PATIENCE, async || reason().await["reason"] == "standby").await;
    assert_eq!(reason().await["application"], "copy");
    let (code, why, _) = outbox_relay(&text, &["cursor", "why", "kept"]).await;
    assert!(code == Some(3) && why.contains("standby copy (pid"), "{code:?}: {why}");
    let (code, _, log) = outbox_relay(&text, &["cursor", "seek", "kept", "--now", "--yes"]).await;
    assert!(code == Some(1) && log.contains("standby copy (pid") && !log.contains("is writing"), "{code:?}: {log}");
    kill_process(frozen, Signal::CONT).unwrap();
    eventually(PATIENCE, async || arrived("kept") == 20).await;

    let frozen = receiver(&standby).await;
    kill_process(frozen, Signal::STOP).unwrap();
    insert(&owner, 10).await;
    eventually(PATIENCE, async || arrived("local") == 30).await;
    postgres.kill9().await.unwrap();
    // What the frozen process has in its hands is lost with it, as with its machine.
    standby.kill9().await.unwrap();
    kill_process(frozen, Signal::KILL).unwrap();
    standby.restart().await.unwrap();
    standby.promote().await.unwrap();
    let promoted = standby.connect("postgres", DATABASE).await.unwrap();
    let rows: i64 = promoted.query_one("SELECT count(*) FROM bookings", &[]).await.unwrap().get(0);
    assert_eq!((rows, arrived("kept"), arrived("local")), (20, 20, 30), "rows that are there, and that were delivered");
}

// Guarantee: horizon.standby
#[tokio::test(flavor = "multi_thread")]
async fn without_enough_standbys_rows_wait_and_what_is_missing_is_told() {
    let (postgres, owner) = primary().await;
    let text = toml_of(&postgres.url("relay_stats", DATABASE), None, &waiting("kept", "2"));
    let check = async |text: &str| json(&outbox_relay(text, &["check", "-o", "json"]).await.1);
    let missing = check(&text).await;
    let told = finding(&missing, "standby_missing").unwrap_or_else(|| panic!("{missing}"));
    assert_eq!(told["level"], "warn");

    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 5).await;
    let why = async || outbox_relay(&text, &["cursor", "why", "kept"]).await.1;
    eventually(PATIENCE, async || why().await.contains("too few standbys are connected")).await;
    let (code, _, log) = outbox_relay(&text, &["cursor", "seek", "kept", "--now", "--yes"]).await;
    assert!(code == Some(1) && log.contains("error: too few standbys are connected"), "{code:?}: {log}");
    let _one = postgres.standby("one").await.unwrap();
    assert_eq!(printed(&process, "kept").len(), 0);
    let _two = postgres.standby("two").await.unwrap();
    eventually(PATIENCE, async || printed(&process, "kept").len() == 5).await;
    let connected = check(&text).await;
    assert!(finding(&connected, "standby_connected").is_some(), "{connected}");

    // Without the right to see them, nothing is known of them.
    let text = toml_of(&postgres.url("relay", DATABASE), None, &waiting("kept", "2"));
    let unreadable = check(&text).await;
    let told = finding(&unreadable, "standby_unreadable").unwrap_or_else(|| panic!("{unreadable}"));
    assert_eq!(told["fix_sql"], "GRANT pg_read_all_stats TO relay;");
}
