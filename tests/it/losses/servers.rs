//! Sessions of one relay that are on two servers, and cursors made at the same instant.

use std::collections::BTreeSet;

use outbox_relay::cursor::{self, Advance, Creation, LockedCursor, RestsOn};
use outbox_relay::database::{self, Error};
use outbox_relay::position::{Position, Timestamp};
use outbox_relay::source::fetch::FetchError;
use outbox_testkit::postgres::{Options, Postgres};

use super::run;
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, PATIENCE, Reader, bookings, database, eventually, sessions};

/// A table with one row, on a server of the test's own.
async fn server() -> (Database, Reader) {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let postgres: &'static Postgres = Box::leak(Box::new(postgres));
    let database = Database { name: "template_outbox".to_owned(), postgres };
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
    let reader = Reader::new(&database, "relay").await;
    (database, reader)
}

// Guarantee: horizon.one-server
#[tokio::test]
async fn scan_of_another_server_reads_nothing() {
    let (here, there) = (server().await, server().await);
    let elsewhere = there.1.watched().await;
    let error = here.1.read(&elsewhere).await.unwrap_err();
    assert!(matches!(error, FetchError::Database(Error::TwoServers { .. })), "{error}");
    here.1.settled(&[1]).await;
}

// Guarantee: horizon.one-server
#[tokio::test]
async fn restarted_server_is_another_server() {
    let mut postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let identity = async |postgres: &Postgres| {
        let url = postgres.url("postgres", "postgres");
        let relay = crate::support::relays::toml_of(&url, None, "");
        let sessions = outbox_relay::database::Sessions::new(
            crate::support::relays::parse(&relay).postgres,
            crate::support::reader::LIMITS,
            "outbox-relay/test".to_owned(),
        );
        std::sync::Arc::clone(&sessions.open().await.unwrap().server)
    };
    let before = identity(&postgres).await;
    assert!(before.same_as(&*identity(&postgres).await).is_ok());
    postgres.restart().await.unwrap();
    let after = identity(&postgres).await;
    assert_eq!(before.system, after.system);
    assert!(matches!(before.same_as(&after), Err(Error::TwoServers { .. })));
}

// Guarantee: horizon.one-cursor-set
#[tokio::test]
async fn two_sets_of_cursors_are_never_created() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let identity = |shards: u32| {
        format!("{{\"table\": \"public.bookings\", \"shards\": \"{shards}\", \"shard_key\": \"customer\"}}")
    };
    let (two, three) = (identity(2), identity(3));
    let first = database.connect("relay").await;
    run(&first, "BEGIN").await;
    let creation =
        Creation { name: "events#0", relay: "events", identity: &two, position: None, rule: None, sweep: None };
    assert!(cursor::create(&first, creation).await.unwrap());
    let second = sessions(&database, "relay", "outbox-relay/second").open().await.unwrap();
    let late = tokio::spawn(async move {
        let creation =
            Creation { name: "events#2", relay: "events", identity: &three, position: None, rule: None, sweep: None };
        cursor::create(&second, creation).await.unwrap()
    });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    eventually(PATIENCE, || async {
        owner.query_one(waits, &[]).await.unwrap().get::<_, bool>(0) || late.is_finished()
    })
    .await;
    run(&first, "COMMIT").await;
    assert!(!late.await.unwrap(), "a cursor of another set is there");
    let names = owner.query("SELECT name FROM outbox.cursor", &[]).await.unwrap();
    assert_eq!(names.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["events#0"]);
}

// Guarantee: horizon.one-cursor-set
#[tokio::test]
async fn advance_of_deleted_row_commits_nothing() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    run(&owner, "INSERT INTO outbox.cursor (name, relay) VALUES ('r', 'r'); CREATE TABLE model (n integer)").await;
    let pool = database::pool(sessions(&database, "postgres", "outbox-relay/test"), 1).unwrap();
    let locked = LockedCursor::lock(database::take(&pool).await.unwrap(), "r", "{}", None).await.unwrap().unwrap();
    // As a statement of the SQL sink could: what it has written must not be committed without the advance.
    locked.transaction().batch_execute("INSERT INTO public.model VALUES (1); DELETE FROM outbox.cursor").await.unwrap();
    let position = Position { created_at: Timestamp::from_unix_micros(0), id: Some("1".to_owned()) };
    let advance = Advance {
        beyond: None,
        park: None,
        parked: None,
        position: Some(&position),
        observed_at: position.created_at,
        snapshot: None,
        sweep: None,
        audit: None,
        late: None,
        relations: (1, &BTreeSet::new()),
        seek_applied: 0,
        identity: "{}",
        partitions: None,
        dead: &[],
        rests_on: &RestsOn::default(),
        by: "test",
        durable: true,
    };
    let error = locked.advance(advance).await.unwrap_err();
    assert!(matches!(error, Error::Vanished(_)), "{error}");
    let left = "SELECT (SELECT count(*) FROM model) + (SELECT count(*) - 1 FROM outbox.cursor)";
    eventually(PATIENCE, || async { owner.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0 }).await;
}
