//! Three replicas under load, with a cursor in each condition that dashboards and alerts know.

use std::io::Write as _;
use std::time::Duration;

use outbox_testkit::bookings::{Load, Table, Writers};
use tokio_postgres::Client;

use super::front::{address, answer};
use super::gateway::{Gateway, Mood, sms_relay};
use super::outside::{client, get, halted, listener, stdout_relay};
use super::{Database, PATIENCE, Process, broker, database, eventually, kafka_relay, toml, unique};

/// See the module.
pub struct Fleet {
    pub database: Database,
    pub owner: Client,
    pub replicas: Vec<Process>,
    /// Where each replica listens: `http://…`.
    pub listeners: Vec<String>,
    _writers: Writers,
    _tokens: tempfile::NamedTempFile,
}

impl Fleet {
    /// The cursors: `events` to Kafka and `sms` deliver, `failing` is answered 503, `halted` was answered 400, `paused`
    /// is paused. All read one table, whose writers pause inside their transactions. `due` sends rows of another that
    /// become due one after another; `jobs` carries out a schedule that comes each second, and has one that cannot run. Each replica has an intake, which has refused a call.
    pub async fn start() -> Self {
        let (database, broker, topic) = (database().await, broker().await, unique("fleet"));
        let owner = database.connect("postgres").await;
        Table::PLAIN.create(&owner).await.unwrap();
        broker.create_topic(&topic, 3, &[]).await.unwrap();
        prepare(&owner).await;
        let (accepting, failing, refusing) = (Gateway::start().await, Gateway::start().await, Gateway::start().await);
        failing.set(Mood::Refuse(503, "{}"));
        refusing.set(Mood::Refuse(400, r#"{"code":21211}"#));
        let relays = [
            kafka_relay("events", &topic, ""),
            sms_relay("sms", &accepting, ""),
            sms_relay("failing", &failing, "rate_per_second = 100\n"),
            sms_relay("halted", &refusing, ""),
            stdout_relay("paused", ""),
            "[[relay]]\nname = \"due\"\n[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\n\
             sent = \"sent\"\nlimit = 1\n[relay.sink.stdout]\n"
                .to_owned(),
            "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.sink.stdout]\n".to_owned(),
        ];
        let mut tokens = tempfile::NamedTempFile::new().unwrap();
        writeln!(tokens, "a-token-that-nobody-has").unwrap();
        let intake = format!("[intake]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n", tokens.path().display());
        let text = toml(&database, "relay", Some(&broker.bootstrap_servers()), &(intake + &relays.concat()));
        let replicas: Vec<_> =
            ["r1", "r2", "r3"].iter().map(|name| Process::spawn(&text, &["run", "--replica-id", name])).collect();
        let load = Load {
            writers: 4,
            rows_per_second: Some(60.0),
            payload: 100..=1_000,
            longest_pause: Duration::from_millis(200),
            ..Load::default()
        };
        let writers = Writers::start(&database.url("app"), load).await.unwrap();
        let mut listeners = Vec::new();
        for replica in &replicas {
            listeners.push(listener(replica).await);
        }
        settled(&replicas, &listeners).await;
        halted(&owner, "halted").await;
        Self { database, owner, replicas, listeners, _writers: writers, _tokens: tokens }
    }
}

/// A cursor that is paused, rows that become due, and two schedules.
async fn prepare(owner: &Client) {
    for sql in [
        "INSERT INTO outbox.control (cursor, paused) VALUES ('paused', true)",
        "CREATE TABLE todos (id integer PRIMARY KEY, at timestamptz NOT NULL, sent boolean NOT NULL DEFAULT false); \
         GRANT SELECT, UPDATE (sent) ON todos TO relay; \
         INSERT INTO todos SELECT n, now() + n * interval '20 milliseconds' FROM generate_series(1, 10000) AS n",
        "INSERT INTO outbox.schedule (name, relay, rule) VALUES ('ticks', 'jobs', 'FREQ=SECONDLY'), \
         ('never', 'jobs', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30')",
    ] {
        owner.batch_execute(sql).await.unwrap();
    }
}

/// Each replica is ready, and has refused a call.
async fn settled(replicas: &[Process], listeners: &[String]) {
    for listener in listeners {
        eventually(PATIENCE * 2, || async { get(&format!("{listener}/readyz")).await.0 == 200 }).await;
    }
    for replica in replicas {
        let refused = client().post(format!("{}/v1/requests", address(replica).await));
        assert_eq!(answer(refused).await.unwrap().status, 401);
    }
}
