//! A name that leads to two servers: what one says is not used on the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outbox_testkit::postgres::{Options, Postgres};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::Client;

use super::run;
use crate::support::outside::stdout_relay;
use crate::support::relays::toml_of;
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, bookings, outbox_relay};

/// A server of the test's own with rows, and two cursors behind them, made through `relay`.
async fn server(relay: &str) -> (Database, Client) {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let database = Database { name: "template_outbox".to_owned(), postgres: Box::leak(Box::new(postgres)) };
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings (customer) SELECT 'c' || n FROM generate_series(1, 20) AS n").await;
    for args in [&["migrate", "up", "--indexes"][..], &["run", "--once"]] {
        let (code, out, log) = outbox_relay(&toml_of(&database.url("postgres"), None, relay), args).await;
        assert_eq!(code, Some(0), "{out} {log}");
    }
    (database, owner)
}

/// Carries connections to `here`, and the one of this number to `there`.
async fn switch(here: u16, there: u16, number: usize) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let target = if counted.fetch_add(1, Ordering::SeqCst) == number { there } else { here };
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (port, connections)
}

/// All that a hand-over changes.
async fn cursors(owner: &Client) -> Vec<String> {
    let sql = "SELECT to_jsonb(c)::text FROM outbox.cursor AS c ORDER BY name";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reshard_with_sessions_on_two_servers_changes_nothing() {
    let shards = |shards: u32| stdout_relay("events", &format!("shards = {shards}\nshard_key = \"customer\""));
    let (here, owner) = server(&shards(2)).await;
    let (there, other) = server(&shards(2)).await;
    for (database, args) in [(&here, ["migrate", "up", "--indexes"]), (&there, ["migrate", "up", "--indexes"])] {
        let (code, out, log) = outbox_relay(&toml_of(&database.url("postgres"), None, &shards(3)), &args).await;
        assert_eq!(code, Some(0), "{out} {log}");
    }
    let port = |database: &Database| -> u16 {
        let url = database.url("postgres");
        let host = url.split(['@', '/']).nth(3).unwrap();
        host.rsplit_once(':').unwrap().1.parse().unwrap()
    };
    let (port_here, port_there) = (port(&here), port(&there));
    let before = [cursors(&owner).await, cursors(&other).await];
    let mut refused = 0;
    for number in 0.. {
        let (between, connections) = switch(port_here, port_there, number).await;
        let url = here.url("postgres").replace(&format!(":{port_here}"), &format!(":{between}"));
        let args = ["cursor", "reshard", "events"];
        let (code, out, log) = outbox_relay(&toml_of(&url, None, &shards(3)), &args).await;
        if connections.load(Ordering::SeqCst) <= number {
            assert_eq!(code, Some(0), "all sessions were on one server: {out} {log}");
            break;
        }
        assert_eq!(code, Some(1), "connection {number} was on another server: {out} {log}");
        refused += usize::from(log.contains("two PostgreSQL servers"));
        assert_eq!([cursors(&owner).await, cursors(&other).await], before, "connection {number}: {log}");
    }
    assert!(refused > 0, "a refusal names the two servers");
    assert_eq!(cursors(&owner).await.len(), 3);
}
