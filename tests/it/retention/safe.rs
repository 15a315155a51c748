//! `outbox.safe_to_delete`: what of the application's own tables may go.

use std::fs;

use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::outside::{printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// The line of the statement that a table without a column `txid` does not have.
const LATE_ROWS: &str = "\n  AND bookings.txid < safe.visible_before";

/// The statement of the guide, without its bound of 30 days: the rows here are young.
pub(super) fn statement() -> String {
    let guide = fs::read_to_string("docs/RETENTION.md").unwrap();
    let at = guide.find("DELETE FROM public.bookings\n").expect("the example of the guide");
    let (sql, _) = guide[at..].split_once(';').unwrap();
    let bound = " AND bookings.created_at < now() - interval '30 days'";
    let (before, after) = sql.split_once(bound).expect("a bound of its own");
    assert_eq!(after, LATE_ROWS);
    format!("{before}{after}")
}

/// The same for a table without a column `txid`.
pub(super) fn without_column() -> String {
    statement().replace(LATE_ROWS, "")
}

/// Deletes by the guide as a role of its own, and answers the ids that are left.
async fn left(janitor: &Client) -> Vec<i64> {
    janitor.batch_execute(&without_column()).await.unwrap();
    let rows = janitor.query("SELECT id FROM bookings ORDER BY id", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Who holds, in the view's words without the instants.
async fn held_by(owner: &Client) -> String {
    let sql = "SELECT regexp_replace(held_by, ' [0-9]{4}-[^ ,;]+ [^ ,;]+', '', 'g') FROM outbox.safe_to_delete \
               WHERE schema = 'public' AND name = 'bookings'";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

// Guarantee: retention.safe-to-delete
#[tokio::test(flavor = "multi_thread")]
async fn a_job_deletes_behind_every_cursor_letter_and_change_and_nothing_that_is_still_to_come() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "GRANT SELECT, DELETE ON bookings TO app; GRANT USAGE ON SCHEMA outbox TO app; \
             GRANT SELECT ON outbox.safe_to_delete TO app",
        )
        .await
        .unwrap();
    let insert = async |rows: i64| {
        for _ in 0..rows {
            owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
        }
    };
    let janitor = database.connect("app").await;
    insert(3).await;
    assert_eq!(left(&janitor).await, [1, 2, 3], "without a cursor nothing is said");
    let relays = format!("{}{}", stdout_relay("fast", ""), stdout_relay("slow", ""));
    let text = toml(&database, "relay", None, &relays);
    let process = Process::spawn(&text, &["run"]);
    let prints = |relay: &'static str, count: usize| {
        let process = &process;
        eventually(PATIENCE * 2, move || async move { printed(process, relay).len() == count })
    };
    let stands = |cursor: &'static str, id: &'static str| {
        let owner = &owner;
        let sql = "SELECT position_id FROM outbox.cursor WHERE name = $1";
        eventually(PATIENCE, move || async move {
            owner.query_one(sql, &[&cursor]).await.unwrap().get::<_, Option<String>>(0).as_deref() == Some(id)
        })
    };
    prints("fast", 3).await;
    prints("slow", 3).await;
    outbox_relay(&text, &["cursor", "pause", "slow"]).await;
    insert(3).await;
    prints("fast", 6).await;
    stands("fast", "6").await;
    stands("slow", "3").await;
    assert_eq!(left(&janitor).await, [3, 4, 5, 6], "up to where the paused one stands");
    assert_eq!(held_by(&owner).await, "cursor slow at, paused");
    let unknown =
        "SELECT visible_before IS NULL FROM outbox.safe_to_delete WHERE schema = 'public' AND name = 'bookings'";
    assert!(owner.query_one(unknown, &[]).await.unwrap().get::<_, bool>(0), "its rows do not tell their transactions");

    outbox_relay(&text, &["cursor", "resume", "slow"]).await;
    prints("slow", 6).await;
    stands("slow", "6").await;
    owner
        .batch_execute(
            "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, \
             error, state, dead_lettered_by) SELECT 'fast', 'public.bookings', created_at, '5', 'stdout', 'x', '{}', '{}', \
             '{}', 'dead', 'x' FROM bookings WHERE id = 5",
        )
        .await
        .unwrap();
    assert_eq!(left(&janitor).await, [5, 6]);
    assert_eq!(held_by(&owner).await, "1 open dead letters of cursor fast");
    drop(process);
    // Nobody carries the change out: it holds, and so does a relay that is in no configuration.
    owner.batch_execute("UPDATE outbox.dead_letter SET state = 'discarded', resolved_at = now()").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["cursor", "seek", "slow", "--beginning", "--yes", "--no-wait"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(left(&janitor).await, [5, 6]);
    assert_eq!(held_by(&owner).await, "cursor slow, which is to move to the beginning");
    owner.batch_execute("DELETE FROM outbox.control WHERE cursor = 'slow'").await.unwrap();
    let new = toml(&database, "relay", None, &stdout_relay("new", ""));
    assert_eq!(outbox_relay(&new, &["cursor", "create", "new", "--beginning"]).await.0, Some(0));
    assert_eq!(left(&janitor).await, [5, 6], "a cursor that has not read yet needs every row");
    assert_eq!(held_by(&owner).await, "cursor new at the beginning");
    owner.batch_execute("DELETE FROM outbox.cursor WHERE name = 'new'").await.unwrap();
    assert_eq!(left(&janitor).await, [6], "the row of the position itself stays");
}

// Guarantee: retention.safe-to-delete
#[tokio::test(flavor = "multi_thread")]
async fn a_job_compares_local_times_in_the_relays_zone_whatever_the_zone_of_its_session() {
    let database = database().await;
    let owner = bookings(&database, "timestamp NOT NULL DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')").await;
    owner
        .batch_execute(
            "GRANT SELECT, DELETE ON bookings TO app; GRANT USAGE ON SCHEMA outbox TO app; \
             GRANT SELECT ON outbox.safe_to_delete TO app",
        )
        .await
        .unwrap();
    let relay = stdout_relay("zoned", "").replace("[relay.sink", "time_zone = \"UTC\"\n[relay.sink");
    let text = toml(&database, "relay", None, &relay);
    let mut process = Process::spawn(&text, &["run"]);
    for rows in 1..=2 {
        owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
        eventually(PATIENCE * 2, async || printed(&process, "zoned").len() == rows).await;
    }
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let guide = fs::read_to_string("docs/RETENTION.md").unwrap();
    let in_zone = guide.lines().map(str::trim).find(|line| line.contains("AT TIME ZONE")).expect("the guide has it");
    let naive = "bookings.created_at < safe.created_at";
    let sql = without_column().replace(naive, in_zone.trim_start_matches("AND "));
    let janitor = database.connect("app").await;
    let ids = async || {
        let rows = janitor.query("SELECT id FROM bookings ORDER BY id", &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>()
    };
    janitor.batch_execute(&format!("SET TimeZone TO 'Europe/Berlin'; {sql}")).await.unwrap();
    assert_eq!(ids().await, [2, 3], "what is behind the position, and nothing else");
    janitor.batch_execute(&format!("BEGIN; {}", without_column())).await.unwrap();
    assert!(ids().await.is_empty(), "without the zone the row that was not delivered is deleted, too");
    janitor.batch_execute("ROLLBACK").await.unwrap();
}
