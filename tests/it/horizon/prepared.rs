//! A prepared transaction keeps its locks without a process: it holds the horizon until it is decided.
//!
//! A server of its own: under the rule `transactions` a prepared transaction holds back every database of a server.

use outbox_relay::position::Timestamp;
use outbox_testkit::postgres::{Options, Postgres};

use super::ROLES;
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, NOW, Reader, bookings, outbox_relay, toml};

const NONE: [&str; 0] = [];
const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";

// Guarantee: horizon.prepared
#[tokio::test]
async fn a_prepared_transaction_holds_until_it_is_committed_and_then_its_row_comes_first() {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let server = postgres.connect("postgres", "postgres").await.unwrap();
    let postgres: &'static Postgres = Box::leak(Box::new(postgres));
    for (n, (role, default)) in ROLES.into_iter().flat_map(|role| [(role, CLOCK), (role, NOW)]).enumerate() {
        let name = format!("prepared_{n}");
        server.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template_outbox")).await.unwrap();
        let database = Database { name, postgres };
        let owner = bookings(&database, default).await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;

        let writer = database.connect("app").await;
        writer.batch_execute(&format!("BEGIN; {INSERT}")).await.unwrap();
        let bound = reader.scan().await.horizon.held_by[0].bound;
        writer.batch_execute("PREPARE TRANSACTION 'p'").await.unwrap();
        drop(writer);
        owner.batch_execute(INSERT).await.unwrap();
        let sighting = reader.settled(&NONE).await;
        let held = &sighting.horizon.held_by;
        assert_eq!(held.iter().map(|held| held.holder.pid).collect::<Vec<_>>(), [None]);
        // The same holder as before it was prepared: what was known of it still holds.
        assert_eq!(held[0].bound, bound);

        // One that starts only now knows nothing of it.
        let newcomer = Reader::new(&database, role).await;
        let sighting = newcomer.settled(&NONE).await;
        assert_eq!(sighting.horizon.at, Timestamp::NEG_INFINITY);
        assert_eq!(sighting.horizon.held_by[0].bound, None);
        status_says_so(&database, role).await;

        let end = if default == CLOCK { "COMMIT PREPARED 'p'" } else { "ROLLBACK PREPARED 'p'" };
        owner.batch_execute(end).await.unwrap();
        let expected: &[i32] = if default == CLOCK { &[1, 2] } else { &[2] };
        reader.expect(expected).await;
        newcomer.expect(expected).await;
    }
}

/// Operators read who it is in `status`.
async fn status_says_so(database: &Database, role: &str) {
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n";
    let creation = "INSERT INTO outbox.cursor (name, relay) VALUES ('r', 'r')";
    database.connect("postgres").await.batch_execute(creation).await.unwrap();
    let (code, out, log) = outbox_relay(&toml(database, role, None, relay), &["status", "-o", "json"]).await;
    assert!(code.is_some(), "{log}");
    let status: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {log}"));
    let held = &status["cursors"][0]["horizon"]["held_by"][0];
    assert_eq!(held["reason"], "prepared_transaction", "{status}");
    assert!(held["pid"].is_null());
}
