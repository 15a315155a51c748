//! Much was written since late rows were last looked for.

use std::collections::BTreeMap;
use std::time::Duration;

use outbox_relay::late::{Parts, Swept};
use outbox_relay::position::Position;
use outbox_relay::source::fetch::FetchError;
use tokio_postgres::Client;

use super::operators::does;
use super::{LONG_ENOUGH, insert, late_rows, marked, printing, prints, run, swept, transactions};
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, Reader, database, eventually, toml};

/// More than a look asks for that is not a turn's.
const MANY: u32 = 70_000;

/// Up to which transaction the cursor's snapshot sees, and where it stands.
async fn known(owner: &Client) -> (i64, String) {
    let sql =
        "SELECT pg_snapshot_xmax(snapshot)::text::bigint, position_id FROM outbox.cursor WHERE position_id IS NOT NULL";
    let row = owner.query_opt(sql, &[]).await.unwrap();
    row.map_or_else(|| (0, String::new()), |row| (row.get(0), row.get(1)))
}

// Guarantee: late.backlog
#[tokio::test(flavor = "multi_thread")]
async fn stored_snapshot_moves_on_while_a_sink_is_out_and_late_rows_of_that_time_are_found() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = swept(&database).await;
    let _process = Process::spawn(&toml(&database, "relay", None, &receiver.relay("r", "")), &["run"]);
    insert(&owner, 0, "first").await;
    eventually(PATIENCE, async || known(&owner).await.1 == "1").await;
    receiver.answer(|_| (503, Duration::ZERO));
    insert(&owner, 0, "waits").await;
    eventually(PATIENCE, async || receiver.requests().last().is_some_and(|request| request.status == 503)).await;
    let (before, _) = known(&owner).await;
    transactions(&owner, MANY).await;
    eventually(PATIENCE * 2, async || known(&owner).await.0 > before + i64::from(MANY / 2)).await;
    assert_eq!(known(&owner).await.1, "1", "nothing was passed");
    insert(&owner, 10, "late").await;
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 2, async || super::sinks::accepted(&receiver).len() >= 3).await;
    let mut accepted = super::sinks::accepted(&receiver);
    accepted.sort();
    assert_eq!(accepted, ["1", "2", "3*"]);
}

// Guarantee: late.backlog
#[tokio::test]
async fn paused_cursor_publishes_nothing_and_catches_up_when_it_is_resumed() {
    let database = database().await;
    let owner = swept(&database).await;
    let process = printing(&database, "");
    insert(&owner, 0, "first").await;
    prints(&process, &["1"]).await;
    does(&database, "", &["cursor", "pause", "late"]).await;
    // A turn that began before the pause ends first.
    run(&owner, "SELECT FROM outbox.cursor WHERE name = 'late' FOR UPDATE").await;
    let before = known(&owner).await;
    insert(&owner, 10, "early and late").await;
    transactions(&owner, MANY).await;
    insert(&owner, 0, "second").await;
    insert(&owner, 10, "late").await;
    run(&owner, "INSERT INTO bookings (created_at) SELECT clock_timestamp() FROM generate_series(1, 50000)").await;
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!(
        (marked(&process), known(&owner).await),
        (vec!["1".to_owned()], before),
        "nothing is done while it is paused"
    );
    does(&database, "", &["cursor", "resume", "late"]).await;
    eventually(PATIENCE * 4, async || marked(&process).len() >= 50_004).await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    let mut all: Vec<String> = marked(&process);
    assert_eq!((all.len(), late_rows(&owner).await), (50_004, 2));
    all.retain(|id| id.ends_with('*'));
    assert_eq!(all, ["2*", "4*"]);
}

// Guarantee: late.parts
#[tokio::test]
async fn parts_of_a_look_find_each_late_row_once_whatever_ends_between_them() {
    let database = database().await;
    let owner = swept(&database).await;
    let reader = Reader::new(&database, "relay").await;
    insert(&owner, 0, "first").await;
    let sql = "SELECT created_at, id::text, pg_current_snapshot()::text FROM bookings";
    let row = owner.query_one(sql, &[]).await.unwrap();
    let after = Position { created_at: row.get(0), id: Some(row.get(1)) };
    let column = reader.shape.lock().await.sweep.unwrap();
    let mut swept = Swept { snapshot: row.get(2), column };
    let late = "INSERT INTO bookings (created_at) VALUES (clock_timestamp() - interval '1 hour')";
    // Half of the writers end before the first look, the others between two of them.
    let mut open = Vec::new();
    for n in 0..24 {
        let writer = database.connect("app").await;
        run(&writer, &format!("BEGIN; {late}")).await;
        if n % 2 == 0 {
            run(&writer, "COMMIT").await
        } else {
            open.push(writer)
        }
        insert(&owner, 0, "above").await;
    }
    let (mut found, mut looks) = (BTreeMap::<String, u32>::new(), 0);
    loop {
        // Other tests' transactions lie between.
        let span = if looks < 200 { 2 } else { 1 << 40 };
        let parts = Parts { span, most: 1, limit: Duration::from_secs(10) };
        let opened = reader.opened(&after, &swept, parts).await.unwrap();
        looks += 1;
        for row in &opened.late {
            *found.entry(row.position.id.clone().unwrap()).or_default() += 1;
        }
        swept.snapshot = opened.snapshot;
        if let Some(writer) = open.pop() {
            run(&writer, "COMMIT").await;
        } else if !opened.part {
            break;
        }
    }
    assert!(looks > 12, "{looks} looks");
    let all = owner.query("SELECT id::text FROM bookings WHERE created_at < $1", &[&after.created_at]).await.unwrap();
    assert_eq!(found, all.iter().map(|row| (row.get(0), 1)).collect::<BTreeMap<String, u32>>());
    assert_eq!(found.len(), 24);
    // One that takes too long is followed by smaller ones, and a single transaction has no smaller one.
    let limit = Duration::from_millis(50);
    let ends = async |span| reader.opened(&after, &swept, Parts { span, most: 6, limit }).await;
    let blocker = database.connect("postgres").await;
    run(&blocker, "BEGIN; LOCK TABLE bookings").await;
    let cut = ends(1_024).await.unwrap();
    assert_eq!((cut.part, cut.span, cut.snapshot), (true, Some(16), swept.snapshot.clone()));
    run(&blocker, "COMMIT").await;
    assert!(!ends(cut.span.unwrap()).await.unwrap().more, "and it goes on");
    run(&blocker, "BEGIN; LOCK TABLE bookings").await;
    assert!(matches!(ends(1).await, Err(FetchError::Late(_))));
}
