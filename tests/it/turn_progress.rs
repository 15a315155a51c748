//! How far a turn has come that did not advance, because its replica was killed in the midst of it.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox_relay::cursor::ahead::{self, Reached};
use outbox_relay::cursor::turn_progress::{self, Resumed, TurnFacts};
use outbox_relay::cursor::{LockedCursor, RestsOn};
use outbox_relay::database::{self, Error, Session};
use outbox_relay::position::{Position, Timestamp};
use outbox_testkit::postgres::{Options, Postgres};
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::outside::{line, printed, stdout_relay};
use crate::support::servers::prepare;
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, broker, database, eventually, ids, kafka_relay, outbox_relay,
    records, sessions, toml, unique,
};

/// One turn takes all of these, however fast the machine.
const TURN: &str = "turn = { rows = 1_000_000, bytes = \"256MiB\", time = \"20s\", deadline = \"60s\" }";

async fn insert(owner: &Client, rows: usize) {
    let sql = format!("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, {rows})");
    owner.batch_execute(&sql).await.unwrap();
}

// Guarantee: delivery.turn-progress
#[tokio::test(flavor = "multi_thread")]
async fn replica_killed_in_a_turn_of_hundreds_of_thousands_of_rows_repeats_at_most_20000() {
    const ROWS: usize = 300_000;
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("progress");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &kafka_relay("kept", &topic, TURN));
    // The first turn of a process is small.
    let mut killed = Process::spawn(&text, &["run", "--replica-id", "killed"]);
    insert(&owner, 10).await;
    eventually(PATIENCE, async || records::count(&servers, &topic).await == Some(10)).await;
    insert(&owner, ROWS - 10).await;
    let arrived = async || records::count(&servers, &topic).await.unwrap_or_default();
    let position = async || {
        let row = owner.query_one("SELECT COALESCE(position_id::bigint, 0) FROM outbox.cursor", &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    eventually(PATIENCE * 3, async || arrived().await > position().await + 40_000).await;
    killed.signal(Signal::KILL);
    killed.wait().await;
    let (delivered, moved) = (arrived().await, position().await);
    assert!(delivered > moved + 30_000, "killed in a turn: {moved} advanced over, {delivered} in the topic");

    let heir = Process::spawn(&text, &["run", "--replica-id", "heir"]);
    let resumed = line(&heir, "continuing where an interrupted turn had come").await;
    assert_eq!(resumed["by"], "killed", "{resumed}");
    eventually(PATIENCE * 6, async || ids(&servers, &topic).await.last() == Some(&ROWS.to_string())).await;
    let ids: Vec<usize> = ids(&servers, &topic).await.iter().map(|id| id.parse().unwrap()).collect();
    let mut seen = BTreeSet::new();
    let first: Vec<usize> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
    assert_eq!(first, (1..=ROWS).collect::<Vec<_>>(), "none lost, first deliveries in order");
    let repeated = ids.len() - first.len();
    println!("{repeated} rows came again; {delivered} were delivered, {moved} advanced over");
    assert!(repeated <= 20_000, "{repeated} rows came again");
}

/// A cursor of the relay `s` after ten rows, and the version of its row.
async fn advanced(owner: &Client, text: &str) -> String {
    insert(owner, 10).await;
    let (code, _, log) = outbox_relay(text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let sql = "SELECT xmin::text || ' ' || (EXTRACT(EPOCH FROM updated_at) * 1000000)::bigint FROM outbox.cursor";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

/// Progress up to row 25, of a turn that had this version of the cursor's row locked.
async fn recorded(owner: &Client, base: &str) {
    let sql = "INSERT INTO outbox.turn_progress (cursor, base, position_created_at, position_id, rows, observed_at, snapshot, relations, \
               rule, written_by) SELECT c.name, $1, b.created_at, '25', 5, c.observed_at, pg_current_snapshot(), c.relations, c.rule, \
               'ended' FROM outbox.cursor AS c, bookings AS b WHERE b.id = 25 \
               ON CONFLICT (cursor) DO UPDATE SET base = excluded.base";
    assert_eq!(owner.execute(sql, &[&base]).await.unwrap(), 1);
}

// Guarantee: delivery.turn-progress
#[tokio::test]
async fn progress_of_an_earlier_version_of_the_cursor_skips_no_row() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let earlier = advanced(&owner, &text).await;
    let version = advanced(&owner, &text).await;
    assert_ne!(earlier, version);
    insert(&owner, 10).await;
    let rest = |from: i64| (from..=30).map(|id| id.to_string()).collect::<Vec<_>>();

    // The turn that wrote it has lost its lock, and the next holder has advanced.
    recorded(&owner, &earlier).await;
    let mut process = Process::spawn(&text, &["run", "--once"]);
    assert_eq!(process.wait().await, Some(0));
    assert_eq!(printed(&process, "s"), rest(21));

    // The same one counts while the row is the version that its turn had locked: rows up to there were acknowledged.
    let back = "UPDATE outbox.cursor SET (position_created_at, position_id) = (SELECT created_at, id::text FROM bookings WHERE id = 20) \
                RETURNING xmin::text || ' ' || (EXTRACT(EPOCH FROM updated_at) * 1000000)::bigint";
    let version: String = owner.query_one(back, &[]).await.unwrap().get(0);
    recorded(&owner, &version).await;
    let mut process = Process::spawn(&text, &["run", "--once"]);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    assert_eq!(printed(&process, "s"), rest(26));
}

// Guarantee: delivery.turn-progress
#[tokio::test]
async fn operators_seek_wins_over_recorded_progress() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let _ = advanced(&owner, &text).await;
    let version = advanced(&owner, &text).await;
    insert(&owner, 10).await;
    recorded(&owner, &version).await;
    let process = Process::spawn(&text, &["run"]);
    line(&process, "continuing where an interrupted turn had come").await;
    eventually(PATIENCE, async || printed(&process, "s").len() == 5).await;
    let seek = ["cursor", "seek", "s", "--beginning", "--yes"];
    let (code, _, log) = outbox_relay(&text, &seek).await;
    assert_eq!(code, Some(0), "{log}");
    let all: Vec<String> = (26..=30).chain(1..=30).map(|id| id.to_string()).collect();
    eventually(PATIENCE, async || printed(&process, "s") == all).await;
    // Of a cursor that is removed nothing is left.
    let removed = owner.execute("DELETE FROM outbox.cursor", &[]);
    tokio::time::timeout(Duration::from_secs(10), removed).await.expect("no lock").unwrap();
    let left: i64 = owner.query_one("SELECT count(*) FROM outbox.turn_progress", &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}

/// A cursor `c` that has passed nothing yet.
async fn cursor(database: &Database) -> Client {
    let owner = database.connect("postgres").await;
    let insert =
        "INSERT INTO outbox.cursor (name, relay, position_created_at, position_id) VALUES ('c', 'c', 'epoch', '0')";
    owner.batch_execute(insert).await.unwrap();
    owner
}

async fn locked(pool: &database::Pool) -> LockedCursor {
    let lock = async || LockedCursor::lock(database::take(pool).await.unwrap(), "c", "{}", None).await.unwrap();
    loop {
        // The session that is gone may still hold the row for an instant.
        if let Some(locked) = lock().await {
            return locked;
        }
    }
}

fn facts(locked: &LockedCursor, by: &str) -> TurnFacts {
    TurnFacts {
        cursor: "c".to_owned(),
        lock: locked.turn_lock(),
        observed_at: Timestamp::from_unix_micros(0),
        relations: vec![1],
        partitions: None,
        rests_on: RestsOn::default(),
        sweep: None,
        by: by.to_owned(),
    }
}

/// Records that so many rows were acknowledged.
async fn write(session: &Session, facts: &TurnFacts, rows: u16) -> Result<(), Error> {
    let end = Position { created_at: Timestamp::from_unix_micros(rows.into()), id: Some(rows.to_string()) };
    turn_progress::write(session, facts, (rows.into(), &end), "3:3:").await
}

/// Whose progress is recorded, and over how many rows.
async fn progress(owner: &Client) -> Option<(String, i64)> {
    let row = owner.query_opt("SELECT written_by, rows FROM outbox.turn_progress", &[]).await.unwrap()?;
    Some((row.get(0), row.get(1)))
}

// Guarantee: delivery.turn-progress
#[tokio::test]
async fn turn_that_has_lost_its_lock_records_nothing_over_the_next_turns_progress() {
    let database = database().await;
    let owner = cursor(&database).await;
    let pool = database::pool(sessions(&database, "relay", "outbox-relay/turns"), 2).unwrap();
    let probe = sessions(&database, "relay", "outbox-relay/probe").open().await.unwrap();
    let first = locked(&pool).await;
    let lost = facts(&first, "lost");
    let pid: i32 = first.transaction().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    owner.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
    first.closed().cancelled().await;
    drop(first);

    // It is the same version of the row that the next turn has.
    let second = locked(&pool).await;
    write(&probe, &lost, 10).await.unwrap();
    assert_eq!(progress(&owner).await, None, "another transaction has locked the row since");
    write(&probe, &facts(&second, "next"), 20).await.unwrap();
    write(&probe, &lost, 15).await.unwrap();
    assert_eq!(progress(&owner).await, Some(("next".to_owned(), 20)));
    drop(second); // as if it were killed

    let heir = locked(&pool).await;
    assert!(heir.resumes);
    let resumed = heir.resume(true, Some(7), "heir").await.unwrap();
    assert_eq!(resumed, Some(Resumed { rows: 20, by: "next".to_owned() }));
    let at: String = owner.query_one("SELECT position_id FROM outbox.cursor", &[]).await.unwrap().get(0);
    assert_eq!(at, "20");
    let recorded = "SELECT reads, up_to_id, row_count, octet_length(sums) FROM outbox.audit_slice";
    let recorded = owner.query_one(recorded, &[]).await.unwrap();
    let rows: (i64, &str, i64, i32) = (recorded.get(0), recorded.get(1), recorded.get(2), recorded.get(3));
    assert_eq!(rows, (7, "20", 20, 0), "up to where rows were passed, and how many");
    write(&probe, &lost, 15).await.unwrap();
    assert!(!locked(&pool).await.resumes, "nor after the cursor has moved");
}

// Guarantee: lanes.ahead
#[tokio::test]
async fn rows_ahead_are_recorded_only_under_lock_of_their_turn() {
    let database = database().await;
    let owner = cursor(&database).await;
    let pool = database::pool(sessions(&database, "relay", "outbox-relay/turns"), 2).unwrap();
    let probe = sessions(&database, "relay", "outbox-relay/probe").open().await.unwrap();
    let first = locked(&pool).await;
    let lost = facts(&first, "lost");
    let pid: i32 = first.transaction().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    owner.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
    first.closed().cancelled().await;
    drop(first);

    let second = locked(&pool).await;
    let record = async |facts: &TurnFacts, id| ahead::record(&probe, facts, &beyond(id), None).await.unwrap();
    assert!(!record(&lost, "1").await, "another transaction has locked the row since");
    assert!(record(&facts(&second, "next"), "2").await);
    assert!(!record(&lost, "3").await);
    drop(second); // as if it were killed

    let (rows, _) = locked(&pool).await.rows_ahead().await.unwrap();
    assert_eq!(rows.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), ["2"]);
}

fn beyond(id: &str) -> Reached {
    let created_at = Timestamp::from_pg_micros(i64::MAX / 2);
    Reached { prefix: None, beyond: vec![Position { created_at, id: Some(id.to_owned()) }] }
}

/// A server of the test's own.
async fn server() -> Database {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    Database { name: "template_outbox".to_owned(), postgres: Box::leak(Box::new(postgres)) }
}

// Guarantee: delivery.turn-progress
#[tokio::test]
async fn progress_of_a_turn_is_recorded_on_the_server_of_its_lock_only() {
    let (here, there) = (server().await, server().await);
    let (owner, other) = (cursor(&here).await, cursor(&there).await);
    let pool = database::pool(sessions(&here, "relay", "outbox-relay/turns"), 1).unwrap();
    let turn = locked(&pool).await;
    let transaction: String =
        turn.transaction().query_one("SELECT pg_current_xact_id()::text", &[]).await.unwrap().get(0);
    // The other server has a row of the same name at the same place, and it is locked by a transaction of the same number.
    let place = "SELECT ctid::text FROM outbox.cursor";
    let [one, two] =
        [&owner, &other].map(async |client| client.query_one(place, &[]).await.unwrap().get::<_, String>(0));
    assert_eq!(one.await, two.await);
    loop {
        other.batch_execute("BEGIN; SELECT FROM outbox.cursor FOR UPDATE").await.unwrap();
        let number = "SELECT pg_current_xact_id()::text, pg_current_xact_id() > $1::text::xid8";
        let row = other.query_one(number, &[&transaction]).await.unwrap();
        if row.get::<_, String>(0) == transaction {
            break;
        }
        assert!(!row.get::<_, bool>(1), "the other server was too far");
        other.batch_execute("ROLLBACK").await.unwrap();
    }
    let probe = sessions(&there, "relay", "outbox-relay/probe").open().await.unwrap();
    let refused = write(&probe, &facts(&turn, "here"), 10).await;
    let ahead = ahead::record(&probe, &facts(&turn, "here"), &beyond("1"), None).await;
    assert!(matches!(ahead, Err(Error::TwoServers { .. })), "{ahead:?}");
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(progress(&other).await, None, "{refused:?}");
    assert!(matches!(refused, Err(Error::TwoServers { .. })), "{refused:?}");
    let probe = sessions(&here, "relay", "outbox-relay/probe").open().await.unwrap();
    write(&probe, &facts(&turn, "here"), 10).await.unwrap();
    assert_eq!(progress(&owner).await, Some(("here".to_owned(), 10)));
}
