//! What PostgreSQL says comes with other bytes than its own: nothing panics, nothing hangs beyond its limits, nothing is lost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::fuzz::{self, lives};
use crate::support::postgres_proxy::PostgresProxy;
use crate::support::relays::toml_of;
use crate::support::{CLOCK, PATIENCE, Process, bookings, broker, database, ids, kafka_relay, outbox_relay, unique};

// Guarantee: failures.garbled-postgres
#[tokio::test(flavor = "multi_thread")]
async fn rows_outlive_garbled_answers_of_postgres() {
    let (seed, lasts) = (fuzz::seed(), fuzz::lasts());
    let (broker, topic) = (broker().await, unique("wire"));
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let proxy = PostgresProxy::start(database.postgres.port()).await;
    let url = database.url("relay").replace(&format!(":{}", database.postgres.port()), &format!(":{}", proxy.port));
    let text = toml_of(&url, Some(&servers), &kafka_relay("events", &topic, "turn = { deadline = \"1s\" }"));
    let mut first = Process::spawn(&text, &["run", "--replica-id", "r1"]);
    proxy.garble(Some(fastrand::Rng::with_seed(seed)));
    let (end, mut sent) = (Instant::now() + lasts, 0);
    while Instant::now() < end {
        let mut second = Process::spawn(&text, &["run", "--replica-id", "r2"]);
        for _ in 0..20 {
            let insert = "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 10)";
            sent += usize::try_from(owner.execute(insert, &[]).await.unwrap()).unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // What starts with garbled answers may end with a message; the first has started with its own.
        let ended = !lives(&second);
        let code = if ended { second.wait().await } else { Some(0) };
        let log = second.log();
        assert!(code.is_some() && !log.contains("panicked"), "seed {seed}: {code:?}\n{log}");
        if !lives(&first) {
            let code = first.wait().await;
            assert!(code.is_some() && !first.log().contains("panicked"), "seed {seed}: {code:?}\n{}", first.log());
            first = Process::spawn(&text, &["run", "--replica-id", "r1"]);
        }
    }
    let altered = proxy.altered();
    proxy.garble(None);
    assert!(altered > 10, "{altered} messages were garbled");
    tokio::time::sleep(Duration::from_millis(500)).await;
    if !lives(&first) {
        first = Process::spawn(&text, &["run", "--replica-id", "r1"]);
    }
    let distinct = async || ids(&servers, &topic).await.into_iter().collect::<BTreeSet<_>>().len();
    let arrived = tokio::time::timeout(PATIENCE * 6, async {
        while lives(&first) && distinct().await < sent {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    let arrived = arrived.await.is_ok() && lives(&first);
    println!("seed {seed}: {altered} messages garbled, {sent} rows");
    let (found, log) = (distinct().await, first.log());
    assert!(arrived && !log.contains("panicked"), "seed {seed}: {found} of {sent}\n{log}");
}

/// Runs `check` against a server that asks for the password itself; what it prints, and what the server gets then.
async fn asked_in_clear_text(parameters: &str) -> (String, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let length = client.read_i32().await.unwrap();
        let mut startup = vec![0; usize::try_from(length).unwrap() - 4];
        client.read_exact(&mut startup).await.unwrap();
        client.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).await.unwrap();
        let mut got = vec![0; 64];
        let count = client.read(&mut got).await.unwrap_or(0);
        got[..count].to_vec()
    });
    let text = toml_of(&format!("postgresql://relay:hunter2@127.0.0.1:{port}/app{parameters}"), None, "");
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.t\"\n[relay.sink.stdout]\n";
    let (_, out, log) = outbox_relay(&format!("{text}{relay}"), &["check"]).await;
    (out + &log, server.await.unwrap())
}

// Guarantee: failures.clear-text
#[tokio::test(flavor = "multi_thread")]
async fn password_is_not_sent_in_clear_text() {
    let (printed, got) = asked_in_clear_text("").await;
    assert_eq!(got, b"", "{printed}");
    for part in ["credentials", "asks for the password in clear text: nothing was sent", "require_auth=password"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let (printed, got) = asked_in_clear_text("?require_auth=password").await;
    assert_eq!(got, b"p\0\0\0\x0chunter2\0", "{printed}");
}
