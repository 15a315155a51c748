//! PostgreSQL says no in the middle of the work, for each reason that an operator meets: the relay says so with the
//! server's code, neither ends nor loses nor reorders, and goes on by itself when the cause is fixed.

use tokio_postgres::Client;

use crate::support::outside::{fixed, lines, standing};
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, broker, database, eventually, ids, kafka_relay, toml, unique,
};

/// One reason.
struct Trouble {
    /// The server's code.
    state: &'static str,
    /// How the owner brings it about; `DB` is the database.
    begin: &'static str,
    /// How it is fixed.
    end: &'static str,
    /// What the owner does again and again meanwhile.
    meanwhile: &'static str,
    /// Whether the relay can still write its status.
    status: bool,
    /// By which word the look at the catalogue, once a second, may say it before any statement fails.
    check: Option<&'static str>,
}

/// Ends the relay's sessions of this database.
const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                            WHERE application_name LIKE 'outbox-relay/%' AND datname = current_database()";

async fn insert(owner: &Client) {
    owner.batch_execute("INSERT INTO bookings SELECT FROM generate_series(1, 20)").await.unwrap();
}

/// Everything so far has arrived, in order; what came again is left out.
async fn arrived(owner: &Client, topic: &str) {
    let rows: i64 = owner.query_one("SELECT count(*) FROM bookings", &[]).await.unwrap().get(0);
    let servers = broker().await.bootstrap_servers();
    let last = rows.to_string();
    eventually(PATIENCE * 4, || async { ids(&servers, topic).await.last() == Some(&last) }).await;
    let (mut first, mut seen) = (ids(&servers, topic).await, std::collections::BTreeSet::new());
    first.retain(|id| seen.insert(id.clone()));
    assert_eq!(first, (1..=rows).map(|id| id.to_string()).collect::<Vec<_>>(), "all, first deliveries in order");
}

/// The relay has said the server's code in its log.
fn said(process: &Process, state: &str) -> bool {
    let says = |text: &serde_json::Value| text.as_str().is_some_and(|text| text.contains(state));
    lines(process).iter().any(|line| line.as_object().unwrap().values().any(says))
}

async fn start(name: &str) -> (Database, Client, String, Process) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let topic = unique(name);
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let turn = "turn = { deadline = \"1s\" }";
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &kafka_relay("r", &topic, turn));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner).await;
    arrived(&owner, &topic).await;
    (database, owner, topic, process)
}

async fn met(trouble: Trouble) {
    let (database, owner, topic, process) = start(trouble.state).await;
    let (admin, locker) = (database.connect("postgres").await, database.connect("postgres").await);
    assert!(!said(&process, trouble.state));
    for statement in trouble.begin.replace("DB", &database.name).split('|') {
        // One at a time: ALTER DATABASE refuses to be part of several.
        locker.batch_execute(statement).await.unwrap();
    }
    if !trouble.begin.starts_with("BEGIN") {
        insert(&owner).await;
    }
    eventually(PATIENCE * 3, async || {
        admin.batch_execute(trouble.meanwhile).await.unwrap();
        let error = standing(&owner, "r").await.map(|(_, _, _, error)| error);
        let seen = error.as_ref().is_some_and(|error| !error.is_null());
        let checked = trouble.check.is_some_and(|code| error.is_some_and(|error| error["code"] == code));
        (said(&process, trouble.state) || checked) && (seen || !trouble.status)
    })
    .await;
    if trouble.status {
        let (state, halted, message_id, error) = standing(&owner, "r").await.unwrap();
        println!("{}: {state}, halted {halted}: {error}", trouble.state);
        assert_eq!(message_id, None, "no row is blamed");
        assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
    }
    for statement in trouble.end.replace("DB", &database.name).split('|') {
        locker.batch_execute(statement).await.unwrap();
    }
    insert(&owner).await;
    arrived(&owner, &topic).await;
    fixed(&owner, "r").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_privilege_is_said_and_waited_out() {
    met(Trouble {
        state: "42501",
        begin: "REVOKE SELECT ON bookings FROM relay",
        end: "GRANT SELECT ON bookings TO relay",
        meanwhile: "",
        status: true,
        check: Some("privilege_missing"),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_gone_is_said_and_waited_out() {
    met(Trouble {
        state: "42703",
        begin: "ALTER TABLE bookings RENAME payload TO gone",
        end: "ALTER TABLE bookings RENAME gone TO payload",
        meanwhile: "",
        status: true,
        check: Some("column_unreadable"),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_stays_locked_is_said_and_waited_out() {
    met(Trouble {
        state: "55P03",
        begin: "BEGIN|INSERT INTO bookings SELECT FROM generate_series(1, 20)|LOCK TABLE bookings IN ACCESS EXCLUSIVE MODE",
        end: "COMMIT",
        meanwhile: "",
        status: true,
        check: None,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_are_cancelled_again_and_again_are_said_and_waited_out() {
    met(Trouble {
        state: "57014",
        begin: "BEGIN|INSERT INTO bookings SELECT FROM generate_series(1, 20)|LOCK TABLE bookings IN ACCESS EXCLUSIVE MODE",
        end: "COMMIT",
        meanwhile: "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' \
                    AND datname = current_database() AND wait_event_type = 'Lock'",
        status: true,
        check: None,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_cannot_be_looked_at_is_in_the_status_until_it_can_also_without_new_rows() {
    let (database, owner, _topic, _process) = start("locked").await;
    let locker = database.connect("postgres").await;
    locker.batch_execute("BEGIN; LOCK TABLE bookings IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let seen = || async { standing(&owner, "r").await.is_some_and(|(_, _, _, error)| error["class"] == "retry") };
    eventually(PATIENCE * 3, seen).await;
    locker.batch_execute("ROLLBACK").await.unwrap();
    fixed(&owner, "r").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_an_administrator_ends_again_and_again_are_opened_again() {
    met(Trouble {
        state: "57P01",
        begin: "BEGIN|INSERT INTO bookings SELECT FROM generate_series(1, 20)|LOCK TABLE bookings IN ACCESS EXCLUSIVE MODE",
        end: "COMMIT",
        meanwhile: END_SESSIONS,
        status: false,
        check: None,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_left_is_said_and_waited_out() {
    met(Trouble {
        state: "53300",
        begin: "ALTER DATABASE DB CONNECTION LIMIT 0",
        end: "ALTER DATABASE DB CONNECTION LIMIT -1",
        meanwhile: END_SESSIONS,
        status: false,
        check: None,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_the_relays_own_that_refuses_writes_is_said_and_waited_out() {
    met(Trouble {
        state: "25006",
        // What a server that has become read-only answers to the advance.
        begin: "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS \
                $$BEGIN RAISE 'cannot execute UPDATE in a read-only transaction' USING ERRCODE = '25006'; END$$|\
                CREATE TRIGGER refuse BEFORE UPDATE ON outbox.cursor FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        end: "DROP TRIGGER refuse ON outbox.cursor",
        meanwhile: "",
        status: true,
        check: None,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_read_only_by_default_does_not_stop_a_relay() {
    let (database, owner, topic, _process) = start("read-only").await;
    let read_only = format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name);
    owner.batch_execute(&read_only).await.unwrap();
    owner.batch_execute(END_SESSIONS).await.unwrap();
    let fresh = database.connect("relay").await;
    let shown: String = fresh.query_one("SHOW default_transaction_read_only", &[]).await.unwrap().get(0);
    assert_eq!(shown, "on", "a new session of the relay's role has it");
    for _ in 0..3 {
        insert(&owner).await;
        arrived(&owner, &topic).await;
    }
}

/// A value whose JSON is made by a function of the owner's, which sleeps at one of them.
const SLOW: &str = "\
    CREATE TYPE pace AS ENUM ('quick', 'slow');
    CREATE FUNCTION to_json(pace) RETURNS json LANGUAGE plpgsql AS
        $$BEGIN IF $1 = 'slow' THEN PERFORM pg_sleep(60); END IF; RETURN to_json($1::text); END$$;
    CREATE CAST (pace AS json) WITH FUNCTION to_json(pace);
    ALTER TABLE bookings ADD pace pace DEFAULT 'quick'";

// Guarantee: failures.slow-row
#[tokio::test(flavor = "multi_thread")]
async fn row_that_takes_longer_than_a_turn_has_code_and_fix() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(SLOW).await.unwrap();
    let (topic, other) = (unique("slow"), unique("other"));
    for topic in [&topic, &other] {
        broker().await.create_topic(topic, 1, &[]).await.unwrap();
    }
    let relay =
        kafka_relay("r", &topic, "turn = { deadline = \"1s\" }").replace("{ column = \"payload\" }", "{ row = true }");
    // The session's limit is that of the relay with the longest deadline.
    let other = kafka_relay("patient", &other, "turn = { deadline = \"60s\" }");
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &format!("{relay}{other}"));
    let alone = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relay);
    for (text, code) in [(alone, "postgres_57014"), (text, "read_timeout")] {
        owner.batch_execute("INSERT INTO bookings (pace) VALUES ('quick'), ('slow'), ('quick')").await.unwrap();
        let process = Process::spawn(&text, &["run"]);
        let error = || async { standing(&owner, "r").await.map(|(_, _, _, error)| error) };
        eventually(PATIENCE * 3, async || error().await.is_some_and(|error| error["code"] == code)).await;
        let hint = error().await.unwrap()["hint"].as_str().unwrap().to_owned();
        for part in ["turn.deadline", "cursor show r", "fewer columns"] {
            assert!(hint.contains(part), "{hint}");
        }
        owner.batch_execute("UPDATE bookings SET pace = 'quick'").await.unwrap();
        arrived(&owner, &topic).await;
        fixed(&owner, "r").await;
        drop(process);
    }
}
