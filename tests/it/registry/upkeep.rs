//! The row is written again until it can be, claims are decided again with it, and halts belong to who has the claim.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::process::Signal;
use tokio_postgres::Client;

use super::{CLOCK, PATIENCE, bookings, database, eventually, refuses, row, start, stdout_relay};
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{halted, line, printed};
use crate::support::{Process, outbox_relay, toml};

const INSERT: &str = "INSERT INTO public.bookings (payload) VALUES ('text')";
const WAITS: &str = "relay waits for replicas with another configuration";

const OLD: &str = "INSERT INTO outbox.replica (id, version, started_at, seen_at, stopped_at) SELECT 'old', '0', t, t, t \
     FROM (SELECT now() - interval '2 days') AS o (t)";

/// Waits until the replica that has just been started reads the others' rows, which it does again after a minute.
async fn has_read(owner: &Client) {
    eventually(PATIENCE, async || row(owner, "old").await.is_none()).await;
}

// Guarantee: failures.claims-renewed
#[tokio::test]
async fn failed_write_decides_claims_again_in_new_session() {
    let database = database().await;
    let mut owner = bookings(&database, CLOCK).await;
    owner.batch_execute(OLD).await.unwrap();
    let first = start(&database, &stdout_relay("shapes", ""), "first");
    has_read(&owner).await;
    owner.batch_execute(OLD).await.unwrap();
    let second = start(&database, &stdout_relay("shapes", "on_poison = \"dead_letter\""), "second");
    line(&second, WAITS).await;
    has_read(&owner).await;
    // While nothing is heard of the first, the second takes its claim; no replica marks the first as stopped yet.
    first.signal(Signal::STOP);
    let lost = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE application_name = 'outbox-relay/first' AND datname = current_database()";
    owner.execute(lost, &[]).await.unwrap();
    refuses(&owner, "second", None).await;
    assert!(!row(&owner, "first").await.unwrap().0, "nothing tells the first that its row was taken for ended");
    // Rows can be read, and not written.
    let locked = owner.transaction().await.unwrap();
    locked.batch_execute("LOCK TABLE outbox.replica IN SHARE MODE").await.unwrap();
    first.signal(Signal::CONT);
    line(&first, "cannot write the row of this replica; relaying goes on").await;
    locked.rollback().await.unwrap();
    refuses(&owner, "first", Some("config_mismatch")).await;
    let before = printed(&first, "shapes").len();
    for count in 1..=3 {
        let delivered = printed(&second, "shapes").len();
        owner.batch_execute(INSERT).await.unwrap();
        eventually(PATIENCE, async || printed(&second, "shapes").len() > delivered).await;
        assert_eq!(printed(&first, "shapes").len(), before, "row {count}");
    }
}

#[tokio::test]
async fn job_deletes_old_rows_when_it_stops() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(OLD).await.unwrap();
    let text = toml(&database, "relay", None, &stdout_relay("rows", ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--replica-id", "job"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(row(&owner, "old").await.is_none() && row(&owner, "job").await.unwrap().0);
}

// Guarantee: failures.claims-renewed
#[tokio::test]
async fn waiting_configuration_ends_no_halt_of_another() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let relay = sms_relay("sms", &gateway, "");
    let _first = start(&database, &relay, "first");
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    halted(&owner, "sms").await;
    let halt = async || {
        let sql = "SELECT halted, last_error ->> 'at', fingerprint FROM outbox.cursor_status WHERE cursor = 'sms'";
        let row = owner.query_one(sql, &[]).await.unwrap();
        (row.get::<_, bool>(0), row.get::<_, Option<String>>(1), row.get::<_, Option<String>>(2))
    };
    let before = halt().await;
    // Its own checks keep the second from running, so that it waits for no claim.
    owner.batch_execute("REVOKE SELECT ON bookings FROM relay_stats").await.unwrap();
    let text = toml(&database, "relay_stats", None, &relay.replace(" confirmed", " is confirmed"));
    let _second = Process::spawn(&text, &["run", "--replica-id", "second"]);
    let own = async || {
        let code = row(&owner, "second").await.map(|(_, relays)| relays[0]["refused"]["code"].clone());
        code.is_some_and(|code| code.is_string() && code != "config_mismatch")
    };
    eventually(PATIENCE * 2, own).await;
    owner.batch_execute("GRANT SELECT ON bookings TO relay_stats").await.unwrap();
    refuses(&owner, "second", Some("config_mismatch")).await;
    assert_eq!(halt().await, before, "the halt of the configuration that has the claim");
}

// Guarantee: failures.claims-renewed
#[tokio::test(flavor = "multi_thread")]
async fn busy_worker_ends_when_its_table_is_refused() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let process = start(&database, &stdout_relay("rows", ""), "r1");
    line(&process, "relay ready").await;
    let writer = database.connect("app").await;
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let writes = tokio::spawn(async move {
        loop {
            writer.batch_execute(INSERT).await.unwrap();
            count.fetch_add(1, Relaxed);
        }
    });
    let delivered = || printed(&process, "rows").len();
    eventually(PATIENCE, async || delivered() > 50).await;
    // Turns read along another index, and notice nothing.
    owner.batch_execute("ALTER TABLE bookings DROP CONSTRAINT bookings_pkey").await.unwrap();
    line(&process, "relay cannot run; it is checked every 5 s").await;
    let more = async || {
        let from = written.load(Relaxed);
        eventually(PATIENCE, async || written.load(Relaxed) > from + 200).await;
    };
    more().await;
    let before = delivered();
    more().await;
    assert_eq!(delivered(), before, "a refused relay delivers no more");
    writes.abort();
}
