//! A session that streams changes to a replica or a connector is busy for as long as it is connected, and writes nothing.

use std::process::{Child, Command, Stdio};

use outbox_testkit::postgres::{Options, Postgres};

use crate::support::servers::prepare;
use crate::support::{Database, NOW, PATIENCE, Reader, bookings, eventually};

/// Ends with the test.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn receive(database: &Database) -> Receiver {
    let program = std::env::var("OUTBOX_RELAY_PG_BIN").map(|bin| format!("{bin}/pg_recvlogical"));
    let program = program.unwrap_or_else(|_| "/usr/lib/postgresql/15/bin/pg_recvlogical".to_owned());
    let url = database.url("postgres");
    let options = ["--slot=stream", "--start", "-f", "/dev/null", "-o", "proto_version=1", "-o", "publication_names=p"];
    let child = Command::new(program).arg("-d").arg(url).args(options).stdout(Stdio::null()).spawn();
    Receiver(child.expect("pg_recvlogical"))
}

// Guarantee: horizon.replication
#[tokio::test]
async fn logical_replication_holds_nothing() {
    let settings = vec![("wal_level".to_owned(), "logical".to_owned())];
    let postgres = Postgres::start(Options { settings, ..Options::default() }).await.unwrap();
    prepare(&postgres).await;
    let database = Database { name: "template_outbox".to_owned(), postgres: Box::leak(Box::new(postgres)) };
    let owner = bookings(&database, NOW).await;
    owner.batch_execute("CREATE PUBLICATION p FOR TABLE public.bookings").await.unwrap();
    owner.batch_execute("SELECT pg_create_logical_replication_slot('stream', 'pgoutput')").await.unwrap();
    let _receiver = receive(&database);
    let streams = "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'walsender' AND state = 'active'";
    eventually(PATIENCE, || async { owner.query_one(streams, &[]).await.unwrap().get(0) }).await;
    let reader = Reader::new(&database, "relay_stats").await;
    for row in 1..=3 {
        owner.batch_execute("INSERT INTO public.bookings DEFAULT VALUES").await.unwrap();
        reader.settled(&(1..=row).collect::<Vec<_>>()).await;
    }
    assert!(owner.query_one(streams, &[]).await.unwrap().get::<_, bool>(0));
}
