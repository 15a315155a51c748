//! A dead letter and the advance over it commit together, whenever the process is killed.

use std::time::Duration;

use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::receiver::Receiver;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

/// Rows whose id is a multiple of this are refused.
const EVERY: i64 = 3;
/// How often the process is killed at no particular instant.
const KILLS: usize = 20;

fn refused(id: i64) -> bool {
    id % EVERY == 0
}

/// Position and dead letters, in one snapshot.
async fn stands(owner: &Client) -> (i64, Vec<i64>) {
    let sql = "SELECT COALESCE(c.position_id::bigint, 0), ARRAY(SELECT d.message_id::bigint FROM outbox.dead_letter AS d \
               WHERE d.cursor = c.name ORDER BY 1) FROM outbox.cursor AS c WHERE c.name = 'r'";
    let row = owner.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Every row up to the position was accepted or put aside, never neither, and nothing beyond it was put aside.
async fn together(owner: &Client, receiver: &Receiver) -> (i64, Vec<i64>) {
    let (position, letters) = stands(owner).await;
    let expected: Vec<i64> = (1..=position).filter(|id| refused(*id)).collect();
    assert_eq!(letters, expected, "the position is {position}");
    let accepted = receiver.accepted("r");
    let missing: Vec<i64> = (1..=position).filter(|id| !refused(*id) && !accepted.contains(&id.to_string())).collect();
    assert!(missing.is_empty(), "passed and never delivered: {missing:?}; the position is {position}");
    (position, letters)
}

fn refusing() -> Receiver {
    let receiver = Receiver::start();
    receiver.answer(|request| {
        let id = request.key.strip_prefix("r/").and_then(|id| id.parse().ok()).unwrap();
        (if refused(id) { 422 } else { 200 }, Duration::ZERO)
    });
    receiver
}

async fn insert(owner: &Client, rows: i32) {
    let sql = "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, $1)";
    owner.execute(sql, &[&rows]).await.unwrap();
}

// Guarantee: failures.dead-letter-commit
#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_instant_leaves_no_row_neither_delivered_nor_put_aside() {
    let (database, receiver) = (database().await, refusing());
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &receiver.relay("r", "on_poison = \"dead_letter\""));
    let mut random = fastrand::Rng::with_seed(11);
    let mut process = Process::spawn(&text, &["run"]);
    for _ in 0..KILLS {
        insert(&owner, 12).await;
        let asked = receiver.requests().len() + random.usize(1..=8);
        eventually(PATIENCE * 6, || async { receiver.requests().len() >= asked }).await;
        // A turn takes some milliseconds from the answer to the end of its commit: any instant of them.
        tokio::time::sleep(Duration::from_micros(random.u64(0..6_000))).await;
        process.signal(Signal::KILL);
        process.wait().await;
        together(&owner, &receiver).await;
        process = Process::spawn(&text, &["run"]);
    }
    let rows = 12 * i64::try_from(KILLS).unwrap();
    eventually(PATIENCE * 3, || async { stands(&owner).await.0 == rows }).await;
    let (_, letters) = together(&owner, &receiver).await;
    let mut first = receiver.accepted("r");
    let deliveries = first.len();
    let mut seen = std::collections::BTreeSet::new();
    first.retain(|id| seen.insert(id.clone()));
    let expected: Vec<String> = (1..=rows).filter(|id| !refused(*id)).map(|id| id.to_string()).collect();
    assert_eq!(first, expected, "first deliveries in order, none lost");
    let twice = deliveries - first.len();
    println!("{KILLS} kills: {} delivered, {} put aside, {twice} delivered twice", first.len(), letters.len());
    assert!(twice <= KILLS, "at most the one row that was on its way");
}

/// Kills the process while a statement of its turn at row 3 waits in this table, and with `ended` its session too; says
/// how it stands after that.
async fn killed_in(table: &str, event: &str, ended: bool) -> (i64, Vec<i64>) {
    let (database, receiver) = (database().await, refusing());
    let owner = bookings(&database, CLOCK).await;
    // Waits while the test holds the other lock.
    let trigger = format!(
        "CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN IF NEW.{} = ''3'' THEN PERFORM pg_advisory_xact_lock(11); END IF; RETURN NEW; END'; \
         CREATE TRIGGER wait {event} ON {table} FOR EACH ROW EXECUTE FUNCTION public.wait()",
        if table == "outbox.cursor" { "position_id" } else { "message_id" }
    );
    owner.batch_execute(&trigger).await.unwrap();
    owner.batch_execute("SELECT pg_advisory_lock(11)").await.unwrap();
    let text = toml(&database, "relay", None, &receiver.relay("r", "on_poison = \"dead_letter\""));
    let mut process = Process::spawn(&text, &["run"]);
    insert(&owner, 5).await;
    let waits = async |granted: &str| {
        let sql = format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 11 AND pid <> pg_backend_pid() \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) {granted}"
        );
        owner.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0) > 0
    };
    eventually(PATIENCE * 2, async || waits("AND NOT granted").await).await;
    assert_eq!(together(&owner, &receiver).await, (2, vec![]), "nobody sees the one without the other");
    process.signal(Signal::KILL);
    process.wait().await;
    if ended {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE application_name LIKE 'outbox-relay/%' AND datname = current_database()";
        owner.batch_execute(end).await.unwrap();
        eventually(PATIENCE, async || !waits("AND NOT granted").await).await;
    }
    owner.batch_execute("SELECT pg_advisory_unlock(11)").await.unwrap();
    eventually(PATIENCE, async || !waits("").await).await;
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' AND datname = $1";
    let gone = async || owner.query_one(sql, &[&database.name]).await.unwrap().get::<_, i64>(0) == 0;
    eventually(PATIENCE, gone).await;
    let stood = together(&owner, &receiver).await;
    let _again = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, || async { stands(&owner).await == (5, vec![3]) }).await;
    together(&owner, &receiver).await;
    assert_eq!(receiver.accepted("r"), ["1", "2", "4", "5"]);
    stood
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_puts_a_row_aside_leaves_neither_letter_nor_advance() {
    assert_eq!(killed_in("outbox.dead_letter", "BEFORE INSERT", false).await, (2, vec![]));
}

// Guarantee: failures.dead-letter-commit
#[tokio::test(flavor = "multi_thread")]
async fn a_process_and_its_session_killed_between_a_dead_letter_and_its_advance_leave_neither() {
    assert_eq!(killed_in("outbox.cursor", "AFTER UPDATE", true).await, (2, vec![]));
}

// Guarantee: failures.dead-letter-commit
#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_between_an_advance_and_the_end_of_its_commit_leaves_both_or_neither() {
    let (position, letters) = killed_in("outbox.cursor", "AFTER UPDATE", false).await;
    println!("killed while the advance waited: position {position}, dead letters {letters:?}");
    assert!([(2, vec![]), (3, vec![3])].contains(&(position, letters)));
}
