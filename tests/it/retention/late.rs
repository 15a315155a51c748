//! `outbox.safe_to_delete` and rows that come late: a job keeps them until every cursor has read them.

use outbox_testkit::postgres::{Options, Postgres};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::safe::{statement, without_column};
use crate::support::outside::{printed, stdout_relay};
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// What makes rows that commit behind a position found, and a role that may delete rows.
const TRACKED: &str = "ALTER TABLE bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                       CREATE INDEX bookings_txid ON bookings (txid, created_at, id); \
                       GRANT SELECT, DELETE ON bookings TO app; GRANT USAGE ON SCHEMA outbox TO app; \
                       GRANT SELECT ON outbox.safe_to_delete TO app";

/// A row that commits now, and says that it was made so many minutes ago.
async fn insert(owner: &Client, minutes: i32) {
    let sql = "INSERT INTO bookings (created_at) VALUES (clock_timestamp() - make_interval(mins => $1))";
    owner.execute(sql, &[&minutes]).await.unwrap();
}

/// Waits until the turns of these cursors that passed the row have committed.
async fn passed(owner: &Client, cursors: &[&str], id: &str) {
    let sql = "SELECT count(*) FROM outbox.cursor WHERE name = ANY ($1) AND position_id = $2";
    let all = i64::try_from(cursors.len()).unwrap();
    let committed = async || owner.query_one(sql, &[&cursors, &id]).await.unwrap().get::<_, i64>(0) == all;
    eventually(PATIENCE * 2, committed).await;
}

async fn ids(client: &Client) -> Vec<i64> {
    let rows = client.query("SELECT id FROM bookings ORDER BY id", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn end(mut process: Process) {
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
}

// Guarantee: retention.late-rows
#[tokio::test(flavor = "multi_thread")]
async fn job_keeps_late_row_until_every_cursor_has_read_it() {
    // A server of its own: what other tests have open would keep rows, too.
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let database = Database { name: "template_outbox".to_owned(), postgres: Box::leak(Box::new(postgres)) };
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(TRACKED).await.unwrap();
    let janitor = database.connect("app").await;
    let (fast, slow) = (stdout_relay("fast", ""), stdout_relay("slow", ""));
    let both = format!("{fast}{slow}");
    let run = |relays: &str| Process::spawn(&toml(&database, "relay", None, relays), &["run"]);

    let process = run(&both);
    for id in ["1", "2"] {
        insert(&owner, 0).await;
        passed(&owner, &["fast", "slow"], id).await;
    }
    end(process).await;
    insert(&owner, 30).await;
    janitor.batch_execute(&format!("BEGIN; {}", without_column())).await.unwrap();
    assert_eq!(ids(&janitor).await, [2], "by their instants alone the row that is to come late is deleted, too");
    janitor.batch_execute(&format!("ROLLBACK; {}", statement())).await.unwrap();
    assert_eq!(ids(&janitor).await, [2, 3]);

    let process = run(&fast);
    eventually(PATIENCE * 2, async || printed(&process, "fast") == ["3"]).await;
    insert(&owner, 0).await;
    passed(&owner, &["fast"], "4").await;
    end(process).await;
    janitor.batch_execute(&statement()).await.unwrap();
    assert_eq!(ids(&janitor).await, [2, 3, 4], "one cursor has not read it yet");

    let process = run(&both);
    passed(&owner, &["slow"], "4").await;
    insert(&owner, 0).await;
    passed(&owner, &["fast", "slow"], "5").await;
    let open = "SELECT count(*) FROM outbox.dead_letter WHERE state IN ('dead', 'redriving')";
    eventually(PATIENCE * 2, async || owner.query_one(open, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    let mut delivered = printed(&process, "slow");
    delivered.sort_unstable();
    assert_eq!(delivered, ["3", "4", "5"], "{}", process.log());
    janitor.batch_execute(&statement()).await.unwrap();
    assert_eq!(ids(&janitor).await, [5], "the row of the positions themselves stays");
}

// Guarantee: retention.late-rows
#[tokio::test(flavor = "multi_thread")]
async fn oldest_snapshot_of_all_cursors_counts_and_an_unknown_one_keeps_every_row() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "GRANT SELECT ON outbox.safe_to_delete TO app; \
             INSERT INTO outbox.cursor (name, relay, identity, position_created_at, snapshot, swept_column) \
             SELECT c.name, c.name, '{\"table\": \"public.bookings\"}', now(), c.snapshot, 4 \
             FROM (VALUES ('a', '20:30:25'::pg_snapshot), ('b', '10:40:15'), ('c', '30:30:')) AS c (name, snapshot)",
        )
        .await
        .unwrap();
    let bound = async || -> Option<String> {
        owner.query_one("SELECT visible_before::text FROM outbox.safe_to_delete", &[]).await.unwrap().get(0)
    };
    assert_eq!(bound().await.as_deref(), Some("10"));
    let text = toml(&database, "postgres", None, &stdout_relay("s", ""));
    let migrate = async |args: &[&str]| {
        let (code, _, log) = outbox_relay(&text, &[&["migrate"], args].concat()).await;
        assert_eq!(code, Some(0), "{log}");
    };
    migrate(&["down", "--to", "19"]).await;
    assert_eq!(bound().await, None, "a job that asks for it deletes nothing");
    migrate(&["up"]).await;
    assert_eq!(bound().await.as_deref(), Some("10"));
    let kept = "SELECT has_table_privilege('app', 'outbox.safe_to_delete', 'SELECT')";
    assert!(owner.query_one(kept, &[]).await.unwrap().get::<_, bool>(0), "the job's role keeps its right");
    // As a program leaves it that knows nothing of late rows, or a turn whose reading was cancelled.
    owner.batch_execute("UPDATE outbox.cursor SET advanced_at = now() WHERE name = 'c'").await.unwrap();
    assert_eq!(bound().await, None);
}
