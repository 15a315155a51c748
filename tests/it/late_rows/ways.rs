//! The ways in which a row comes late.

use super::{LONG_ENOUGH, SWEPT, insert, late_rows, marked, printing, prints, run, swept};
use crate::support::outside::stdout_relay;
use crate::support::{CLOCK, Process, bookings, database, eventually, toml};

const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";

/// A relay that does not wait for writers: rows of long transactions come late.
fn hasty(database: &crate::support::Database) -> Process {
    let relay =
        stdout_relay("late", "latency_window = \"5ms\"").replace("[relay.sink", "horizon = \"window\"\n[relay.sink");
    Process::spawn(&toml(database, "relay", None, &relay), &["run"])
}

// Guarantee: late.ways
#[tokio::test]
async fn rows_of_long_transactions_of_savepoints_and_of_prepared_ones_come_late() {
    let database = database().await;
    let owner = swept(&database).await;
    let process = hasty(&database);
    let (long, saving, prepared) =
        (database.connect("app").await, database.connect("app").await, database.connect("app").await);
    run(&long, &format!("BEGIN; {INSERT}")).await;
    run(&saving, &format!("BEGIN; SAVEPOINT a; {INSERT}; ROLLBACK TO a; SAVEPOINT b; {INSERT}; RELEASE b")).await;
    run(&prepared, &format!("BEGIN; {INSERT}; PREPARE TRANSACTION 'late'")).await;
    run(&owner, INSERT).await;
    prints(&process, &["5"]).await;
    run(&long, "COMMIT").await;
    prints(&process, &["5", "1*"]).await;
    run(&saving, "COMMIT").await;
    prints(&process, &["5", "1*", "3*"]).await;
    run(&prepared, "COMMIT PREPARED 'late'").await;
    prints(&process, &["5", "1*", "3*", "4*"]).await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!((marked(&process).len(), late_rows(&owner).await), (4, 3));
}

// Guarantee: late.down
#[tokio::test]
async fn row_that_came_late_while_no_replica_ran_is_found_at_the_next_start() {
    let database = database().await;
    let owner = swept(&database).await;
    let mut process = printing(&database, "");
    insert(&owner, 0, "first").await;
    prints(&process, &["1"]).await;
    // Else the row comes again, as after every crash.
    let passed = "SELECT FROM outbox.cursor WHERE position_id = '1'";
    eventually(crate::support::PATIENCE, async || owner.query_opt(passed, &[]).await.unwrap().is_some()).await;
    process.signal(rustix::process::Signal::KILL);
    process.wait().await;
    insert(&owner, 10, "dated back").await;
    insert(&owner, 0, "second").await;
    let process = printing(&database, "");
    eventually(crate::support::PATIENCE, async || marked(&process).len() >= 2).await;
    let mut all = marked(&process);
    all.sort();
    assert_eq!(all, ["2*", "3"]);
}

// Guarantee: late.many
#[tokio::test]
async fn more_late_rows_than_are_taken_at_a_time_come_each_once_and_in_order() {
    const ROWS: usize = 12_000;
    let database = database().await;
    let owner = swept(&database).await;
    let process = printing(&database, "");
    insert(&owner, 0, "first").await;
    prints(&process, &["1"]).await;
    run(
        &owner,
        &format!("INSERT INTO bookings (created_at) SELECT now() - interval '1 hour' + n * interval '1 ms' FROM generate_series(1, {ROWS}) AS n"),
    )
    .await;
    eventually(crate::support::PATIENCE * 12, async || marked(&process).len() > ROWS).await;
    let ids: Vec<String> = (2..ROWS + 2).map(|id| format!("{id}*")).collect();
    assert_eq!(marked(&process)[1..], ids);
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!(marked(&process).len(), ROWS + 1);
}

// Guarantee: late.column
#[tokio::test]
async fn rows_that_were_there_before_the_column_was_are_not_taken_for_late() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let process = printing(&database, "");
    run(&owner, INSERT).await;
    prints(&process, &["1"]).await;
    for _ in 0..2 {
        run(&owner, SWEPT).await;
        run(&owner, INSERT).await;
        tokio::time::sleep(LONG_ENOUGH).await; // the catalog is read again, and the cursor knows the column
        insert(&owner, 10, "dated back").await;
        let back: i64 = owner.query_one("SELECT max(id) FROM bookings", &[]).await.unwrap().get(0);
        let late = format!("{back}*");
        eventually(crate::support::PATIENCE, async || marked(&process).contains(&late)).await;
        run(&owner, "ALTER TABLE bookings DROP COLUMN txid").await;
        run(&owner, INSERT).await;
        tokio::time::sleep(LONG_ENOUGH).await;
    }
    assert_eq!(marked(&process), ["1", "2", "3*", "4", "5", "6*", "7"], "{}", process.log());
}

// Guarantee: late.column-cost
#[tokio::test]
async fn adding_the_column_rewrites_nothing_and_gives_one_transaction_to_the_rows_that_are_there() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 1000)").await;
    let file = async || {
        let row = owner.query_one("SELECT pg_relation_filenode('bookings')", &[]).await.unwrap();
        row.get::<_, u32>(0)
    };
    let before = file().await;
    run(&owner, SWEPT).await;
    assert_eq!(file().await, before, "the same file");
    let sql = "SELECT count(DISTINCT txid), bool_and(txid < pg_current_xact_id()) FROM bookings";
    let row = owner.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (1, true));
}

// Guarantee: late.idle-free
#[tokio::test]
async fn idle_relay_that_looks_for_late_rows_takes_no_transaction_id() {
    let database = database().await;
    let owner = swept(&database).await;
    let process = printing(&database, "");
    insert(&owner, 0, "first").await;
    prints(&process, &["1"]).await;
    tokio::time::sleep(LONG_ENOUGH).await; // it rests by then
    let advanced = async || {
        let sql = "SELECT ctid::text, xmin::text FROM outbox.cursor WHERE name = 'late'";
        let row = owner.query_one(sql, &[]).await.unwrap();
        (row.get::<_, String>(0), row.get::<_, String>(1))
    };
    let before = advanced().await;
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!(advanced().await, before, "the cursor's row is not even locked");
}

// Guarantee: late.delivered
#[tokio::test]
async fn once_ends_when_late_rows_are_delivered_too() {
    let database = database().await;
    let owner = swept(&database).await;
    let text = toml(&database, "relay", None, &stdout_relay("late", ""));
    let once = async || {
        let mut process = Process::spawn(&text, &["run", "--once"]);
        assert_eq!(process.wait().await, Some(0), "{}", process.log());
        marked(&process)
    };
    insert(&owner, 0, "first").await;
    assert_eq!(once().await, ["1"]);
    insert(&owner, 5, "late").await;
    assert_eq!(once().await, ["2*"]);
    assert_eq!(once().await, [""; 0]);
}
