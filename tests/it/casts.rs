//! A table's owner creates a cast of a column's type, whose function would run with the rights of the relay's role.

use std::collections::BTreeMap;

use outbox_relay::message::Field;
use outbox_relay::position::Timestamp;
use outbox_relay::source::shape::After;
use outbox_relay::source::{RuleChoice, Stream, TableName, judge, table};
use tokio_postgres::Client;

use crate::support::outside::{finding, halted, json, printed, stdout_relay};
use crate::support::receiver::Receiver;
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, sessions, toml,
};

/// A schema of the role `app`, which is no superuser: a type, and a table that the relay may read.
async fn tenant(database: &Database) -> Client {
    let owner = database.connect("postgres").await;
    owner.batch_execute("CREATE SCHEMA tenant AUTHORIZATION app").await.unwrap();
    let tenant = database.connect("app").await;
    tenant
        .batch_execute(
            "GRANT USAGE ON SCHEMA tenant TO relay; CREATE TYPE tenant.mood AS ENUM ('good', 'bad'); \
             CREATE TABLE tenant.events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
             created_at timestamptz NOT NULL DEFAULT clock_timestamp(), mood tenant.mood NOT NULL DEFAULT 'good'); \
             CREATE INDEX ON tenant.events (created_at, id); GRANT SELECT ON tenant.events TO relay; \
             CREATE TABLE tenant.jobs (id text PRIMARY KEY, due timestamptz NOT NULL DEFAULT now(), sent boolean NOT NULL DEFAULT false, \
             mood tenant.mood NOT NULL DEFAULT 'good'); GRANT SELECT, UPDATE (sent) ON tenant.jobs TO relay",
        )
        .await
        .unwrap();
    tenant
}

/// A cast whose result tells who has called it.
async fn cast(tenant: &Client) {
    tenant
        .batch_execute(
            "CREATE FUNCTION tenant.spy(tenant.mood) RETURNS json LANGUAGE plpgsql AS \
             $$ BEGIN RETURN to_json('called by ' || current_user); END $$; \
             CREATE CAST (tenant.mood AS json) WITH FUNCTION tenant.spy(tenant.mood)",
        )
        .await
        .unwrap();
}

fn events() -> String {
    stdout_relay("s", "").replace("public.bookings", "tenant.events")
}

// Guarantee: security.casts
#[tokio::test(flavor = "multi_thread")]
async fn stream_does_not_read_column_whose_type_has_a_cast_of_its_owner() {
    let database = database().await;
    let (owner, tenant) = (database.connect("postgres").await, tenant(&database).await);
    cast(&tenant).await;
    tenant.batch_execute("INSERT INTO tenant.events DEFAULT VALUES").await.unwrap();
    let text = toml(&database, "relay", None, &events());
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "column_cast").unwrap_or_else(|| panic!("{out}{log}"));
    assert_eq!((code, &found["level"]), (Some(3), &"error".into()));
    for part in ["tenant.events.mood", "tenant.mood", "json", "tenant.spy(tenant.mood)", "role app"] {
        assert!(found["message"].as_str().unwrap().contains(part), "{part}: {found}");
    }
    let process = Process::spawn(&text, &["run"]);
    let (_, error) = halted(&owner, "s").await;
    assert_eq!(error["code"], "column_cast", "{error}");
    assert_eq!(printed(&process, "s"), Vec::<String>::new());
    tenant.batch_execute(found["fix_sql"].as_str().unwrap()).await.unwrap();
    eventually(PATIENCE * 2, async || printed(&process, "s") == ["1"]).await;
    assert!(!process.out().contains("called by"), "{}", process.out());
}

// Guarantee: security.casts
#[tokio::test(flavor = "multi_thread")]
async fn cast_that_is_created_while_a_stream_runs_halts_it() {
    let database = database().await;
    let (owner, tenant) = (database.connect("postgres").await, tenant(&database).await);
    let text = toml(&database, "relay", None, &events());
    let process = Process::spawn(&text, &["run"]);
    tenant.batch_execute("INSERT INTO tenant.events DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, async || printed(&process, "s") == ["1"]).await;
    cast(&tenant).await;
    let (_, error) = halted(&owner, "s").await;
    assert_eq!(error["code"], "column_cast", "{error}");
    tenant.batch_execute("INSERT INTO tenant.events DEFAULT VALUES").await.unwrap();
    // A superuser that owns the function says that it is trusted.
    owner.batch_execute("ALTER FUNCTION tenant.spy(tenant.mood) OWNER TO postgres").await.unwrap();
    eventually(PATIENCE * 2, async || printed(&process, "s") == ["1", "2"]).await;
    assert_eq!(process.out().matches("called by relay").count(), 1, "{}", process.out());
}

/// A claim writes: a function in it could move the cursors of other relays, whose rows would be passed without a trace.
async fn attack(tenant: &Client) {
    tenant
        .batch_execute(
            "CREATE FUNCTION tenant.spy(tenant.mood) RETURNS json LANGUAGE plpgsql AS $$ BEGIN \
             UPDATE outbox.cursor SET position_created_at = now() + interval '30 minutes' WHERE name = 'victim'; RETURN '1'; END $$; \
             CREATE CAST (tenant.mood AS json) WITH FUNCTION tenant.spy(tenant.mood)",
        )
        .await
        .unwrap();
}

fn jobs(receiver: &Receiver) -> String {
    format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.pending]\ntable = \"tenant.jobs\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent\"\n\
         [relay.sink.http]\nurl = \"{}/\"\n",
        receiver.url()
    )
}

// Guarantee: security.casts
#[tokio::test(flavor = "multi_thread")]
async fn claim_calls_no_cast_that_could_move_the_cursor_of_another_relay() {
    let (database, receiver) = (database().await, Receiver::start());
    let (owner, tenant) = (bookings(&database, CLOCK).await, tenant(&database).await);
    let text = toml(&database, "relay", None, &format!("{}{}", stdout_relay("victim", ""), jobs(&receiver)));
    let process = Process::spawn(&text, &["run"]);
    tenant.batch_execute("INSERT INTO tenant.jobs (id) VALUES ('a')").await.unwrap();
    eventually(PATIENCE, async || receiver.accepted("jobs") == ["a"]).await;
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, async || printed(&process, "victim") == ["1"]).await;
    attack(&tenant).await;
    let (_, error) = halted(&owner, "jobs").await;
    assert_eq!(error["code"], "column_cast", "{error}");
    tenant.batch_execute("INSERT INTO tenant.jobs (id) VALUES ('b')").await.unwrap();
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, async || printed(&process, "victim") == ["1", "2"]).await;
    // Nor does a process that finds the cast when it starts.
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "20s"]).await;
    assert!(code == Some(1) && log.contains("column_cast"), "{code:?} {log}");
    assert_eq!(receiver.accepted("jobs"), ["a"]);
    tenant.batch_execute("DROP CAST (tenant.mood AS json)").await.unwrap();
    eventually(PATIENCE * 2, async || receiver.accepted("jobs") == ["a", "b"]).await;
}

// Guarantee: security.casts
#[tokio::test(flavor = "multi_thread")]
async fn key_and_condition_call_no_cast_of_the_tables_owner() {
    let (database, receiver) = (database().await, Receiver::start());
    let (owner, tenant) = (database.connect("postgres").await, tenant(&database).await);
    tenant
        .batch_execute(
            "CREATE TABLE tenant.moods (mood tenant.mood PRIMARY KEY, due timestamptz NOT NULL DEFAULT now()); \
             GRANT SELECT ON tenant.moods TO relay; \
             CREATE FUNCTION tenant.found(text) RETURNS tenant.mood LANGUAGE plpgsql AS $$ BEGIN RETURN 'bad'; END $$; \
             CREATE CAST (text AS tenant.mood) WITH FUNCTION tenant.found(text)",
        )
        .await
        .unwrap();
    let named = format!(
        "[[relay]]\nname = \"named\"\n[relay.source.pending]\ntable = \"tenant.moods\"\nkey = [\"mood\"]\ndue = \"due\"\n\
         [relay.sink.http]\nurl = \"{}/\"\nbody = \"x\"\n",
        receiver.url()
    );
    // It is compared with a text: PostgreSQL would make one of it.
    let compared = events().replace("table =", "where = { mood = \"good\" }\ntable =");
    let check = async |relay: &str| {
        let (_, out, log) = outbox_relay(&toml(&database, "relay", None, relay), &["check", "-o", "json"]).await;
        let document = json(&out);
        finding(&document, "column_cast").map(|found| found["message"].to_string()).ok_or_else(|| format!("{out}{log}"))
    };
    let message = check(&named).await.unwrap();
    assert!(message.contains("from text to tenant.mood"), "{message}");
    assert!(check(&compared).await.is_err(), "a cast from a text is not called there");
    tenant
        .batch_execute(
            "DROP CAST (text AS tenant.mood); \
             CREATE FUNCTION tenant.spy(tenant.mood) RETURNS integer LANGUAGE sql AS 'SELECT 1'; \
             CREATE CAST (tenant.mood AS integer) WITH FUNCTION tenant.spy(tenant.mood) AS IMPLICIT",
        )
        .await
        .unwrap();
    let message = check(&compared).await.unwrap();
    assert!(message.contains("from tenant.mood to integer"), "{message}");
    let _process = Process::spawn(&toml(&database, "relay", None, &compared), &["run"]);
    let (_, error) = halted(&owner, "s").await;
    assert_eq!(error["code"], "column_cast", "{error}");
}

#[tokio::test]
async fn cast_of_the_relays_own_role_or_of_the_owner_of_the_schemas_tables_is_accepted() {
    let database = database().await;
    let (owner, tenant) = (database.connect("postgres").await, tenant(&database).await);
    cast(&tenant).await;
    let text = toml(&database, "relay", None, &events());
    let is_refused = async || {
        let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
        finding(&json(&out), "column_cast").is_some()
    };
    assert!(is_refused().await);
    owner.batch_execute("ALTER FUNCTION tenant.spy(tenant.mood) OWNER TO relay").await.unwrap();
    assert!(!is_refused().await, "the relay's own role");
    owner.batch_execute("ALTER FUNCTION tenant.spy(tenant.mood) OWNER TO app").await.unwrap();
    assert!(is_refused().await);
    owner.batch_execute("ALTER TABLE outbox.cursor OWNER TO app").await.unwrap();
    assert!(!is_refused().await, "the owner of the schema's tables");
}

/// A catalog that was read before the cast was created.
#[tokio::test]
async fn text_of_a_column_is_made_without_a_cast_that_is_new() {
    let database = database().await;
    let tenant = tenant(&database).await;
    tenant
        .batch_execute(
            "CREATE TYPE tenant.pair AS (mood tenant.mood, n integer); CREATE TYPE tenant.moods AS RANGE (subtype = tenant.mood); \
             CREATE DOMAIN tenant.temper AS tenant.mood; \
             ALTER TABLE tenant.events ADD several tenant.mood[] DEFAULT '{good,NULL}', ADD pair tenant.pair DEFAULT '(good,)', \
             ADD several_pairs tenant.pair[], ADD moods tenant.moods DEFAULT '[good,bad]', ADD temper tenant.temper DEFAULT 'bad'; \
             INSERT INTO tenant.events DEFAULT VALUES",
        )
        .await
        .unwrap();
    let stream = Stream {
        table: TableName { schema: "tenant".to_owned(), name: "events".to_owned() },
        id: "id".to_owned(),
        created_at: "created_at".to_owned(),
        horizon: RuleChoice::Auto,
        time_zone: None,
        latency_window: None,
        standbys: 0,
        max_hold: None,
        filter: BTreeMap::new(),
    };
    let session = sessions(&database, "relay", "casts").open().await.unwrap();
    let found = table::inspect(&session, &stream).await.unwrap();
    let shape = found.shape(&stream, &judge::judge(&found, &stream));
    let columns = ["mood", "several", "pair", "several_pairs", "moods", "temper"];
    let fields = columns.map(|column| Field::Text(column.to_owned()));
    assert!(shape.casts_called(&fields).is_empty());
    for (number, kind) in ["mood", "mood[]", "pair", "pair[]", "moods"].into_iter().enumerate() {
        tenant
            .batch_execute(&format!(
                "CREATE FUNCTION tenant.spy_{number}(tenant.{kind}) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'called'; END $$; \
                 CREATE CAST (tenant.{kind} AS text) WITH FUNCTION tenant.spy_{number}(tenant.{kind})"
            ))
            .await
            .unwrap();
    }
    let sql = shape.fetch_sql(&fields, After::Nothing, Some(1 << 20));
    let row = session.query_one(&sql, &[&Timestamp::INFINITY, &1_i64]).await.unwrap();
    let texts: Vec<Option<String>> = (0..columns.len()).map(|column| row.get(column + 2)).collect();
    let expected = [Some("good"), Some("{good,NULL}"), Some("(good,)"), None, Some("[good,bad]"), Some("bad")];
    assert_eq!(texts.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    let found = table::inspect(&session, &stream).await.unwrap();
    let shape = found.shape(&stream, &judge::judge(&found, &stream));
    for field in fields {
        assert!(!shape.casts_called(std::slice::from_ref(&field)).is_empty(), "{field}");
    }
}
