//! Transactions that are prepared while a scan runs.

use std::time::Duration;

use outbox_testkit::postgres::{Options, Postgres};
use tokio_postgres::Client;

use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, NOW, PATIENCE, Reader, bookings, database, eventually};

const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";
/// So many locks of others that a scan lasts long enough to come between.
const LOCKS: &str = "SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 60000) AS n";
const ROUNDS: usize = 8;

/// A server whose lock table is large.
async fn server() -> Database {
    let settings = vec![("max_locks_per_transaction".to_owned(), "1000".to_owned())];
    let postgres = Postgres::start(Options { settings, ..Options::default() }).await.unwrap();
    prepare(&postgres).await;
    Database { name: "template_outbox".to_owned(), postgres: Box::leak(Box::new(postgres)) }
}

/// Waits until the watcher's session carries out its scan.
async fn scan_runs(observer: &Client) {
    let running = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'watcher' AND state = 'active'";
    eventually(PATIENCE, || async { observer.query_one(running, &[]).await.unwrap().get(0) }).await;
}

// Guarantee: horizon.prepared-unseen
#[tokio::test]
async fn transaction_prepared_during_scan_is_not_lost() {
    let database = server().await;
    let owner = bookings(&database, CLOCK).await;
    let locks = database.connect("postgres").await;
    locks.batch_execute(LOCKS).await.unwrap();
    let reader = Reader::new(&database, "relay_stats").await.window(Duration::ZERO).await;
    let observer = database.connect("postgres").await;
    let mut expected: Vec<i64> = Vec::new();
    for round in 0..ROUNDS {
        reader.expect(&expected).await;
        let writer = database.connect("app").await;
        writer.batch_execute(&format!("BEGIN; {INSERT}")).await.unwrap();
        // Stamped after the writer's row, and before its session's next transaction begins.
        owner.batch_execute(INSERT).await.unwrap();
        let scripted = async {
            scan_runs(&observer).await;
            writer.batch_execute(&format!("PREPARE TRANSACTION 'round_{round}'")).await.unwrap();
            writer.batch_execute("BEGIN; SELECT 1").await.unwrap();
        };
        tokio::join!(reader.turn(), scripted).0.unwrap();
        reader.turn().await.unwrap();
        owner.batch_execute(&format!("COMMIT PREPARED 'round_{round}'")).await.unwrap();
        let next = expected.len() as i64;
        expected.extend([next + 1, next + 2]);
    }
    reader.settled(&expected).await;
    drop(locks);
}

// Guarantee: horizon.prepared-unseen
#[tokio::test]
async fn prepared_transaction_of_other_database_holds_nothing() {
    let (here, there) = (database().await, database().await);
    let other = bookings(&there, NOW).await;
    let gid = format!("other_{}", there.name);
    other.batch_execute(&format!("BEGIN; {INSERT}; PREPARE TRANSACTION '{gid}'")).await.unwrap();
    for (role, default) in [("relay", CLOCK), ("relay_stats", CLOCK), ("relay", NOW), ("relay_stats", NOW)] {
        let owner = bookings(&here, default).await;
        owner.batch_execute(INSERT).await.unwrap();
        let reader = Reader::new(&here, role).await;
        reader.expect(&[1]).await;
        let held = reader.settled(&[1]).await.horizon.held_by;
        assert!(held.iter().all(|held| held.holder.pid.is_some()), "{role} {default}: {held:?}");
        owner.batch_execute("DROP TABLE public.bookings").await.unwrap();
    }
    other.batch_execute(&format!("ROLLBACK PREPARED '{gid}'")).await.unwrap();
}
