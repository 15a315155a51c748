//! A statement that cannot run stands in `check` and halts its relay at the start, with the reason.

use serde_json::Value;

use super::{BY_ROW, counted, customers, relay};
use crate::support::outside::{finding, fixed, halted, is_halted, json};
use crate::support::{CLOCK, PATIENCE, Replica, bookings, config, database, eventually, outbox_relay, toml};

const PARAMETERS: &str = r#""customer", "payload", "id""#;

// Guarantee: read-models.check
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_cannot_run_is_found_by_check_and_halts_its_relay_until_it_can() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    customers(&owner).await;
    owner
        .batch_execute(
            "INSERT INTO public.bookings (customer, payload) VALUES ('a', 'p'); \
             ALTER TABLE public.bookings ADD COLUMN tags text[]",
        )
        .await
        .unwrap();
    for (breaks, fixes, statement, code, said) in [
        (
            "REVOKE UPDATE ON app.customers FROM relay",
            "GRANT UPDATE ON app.customers TO relay",
            BY_ROW,
            "sql_42501",
            "permission denied",
        ),
        (
            "ALTER TABLE app.customers RENAME TO clients",
            "ALTER TABLE app.clients RENAME TO customers",
            BY_ROW,
            "sql_42P01",
            "app.customers",
        ),
        (
            "REVOKE USAGE ON SCHEMA app FROM relay",
            "GRANT USAGE ON SCHEMA app TO relay",
            BY_ROW,
            "sql_42501",
            "schema app",
        ),
    ] {
        owner.batch_execute(breaks).await.unwrap();
        let relays = relay("customers", "", statement, PARAMETERS, "");
        let text = toml(&database, "relay", None, &relays);
        let (exit, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
        assert_eq!(exit, Some(3), "{out}{log}");
        let document = json(&out);
        let found = finding(&document, "statement_invalid").expect("a finding");
        assert_eq!((&found["level"], &found["relay"]), (&Value::from("error"), &Value::from("customers")));
        assert!(found["message"].as_str().unwrap().contains(said), "{found}");

        let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
        let (_, error) = halted(&owner, "customers").await;
        assert_eq!((&error["code"], &error["class"]), (&Value::from(code), &Value::from("fatal")), "{error}");
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
        owner.batch_execute(fixes).await.unwrap();
        fixed(&owner, "customers").await;
        eventually(PATIENCE, || async { counted(&owner, "app.customers").await == 1 }).await;
        let (exit, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
        assert_eq!(exit, Some(0), "{out}{log}");
        assert_eq!(finding(&json(&out), "statement").expect("a finding")["level"], Value::from("ok"));
        replica.stop().await;
        assert_eq!(counted(&owner, "app.customers").await, 1, "checking runs nothing");
    }
}

// Guarantee: read-models.check
#[tokio::test(flavor = "multi_thread")]
async fn parameters_that_the_table_cannot_give_are_named() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    customers(&owner).await;
    owner.batch_execute("ALTER TABLE public.bookings ADD COLUMN tags text[]").await.unwrap();
    for (column, each, said) in [
        ("nobody", "row", "the table has no column \"nobody\""),
        (
            "tags",
            "batch",
            "column \"tags\" is of type text[], and PostgreSQL has no arrays of it: write each = \"row\"",
        ),
    ] {
        let statement = "SELECT app.f($1)";
        let relays = relay("r", "", statement, &format!("\"{column}\""), &format!("each = \"{each}\""));
        let (exit, out, log) = outbox_relay(&toml(&database, "relay", None, &relays), &["check", "-o", "json"]).await;
        assert_eq!(exit, Some(3), "{out}{log}");
        let document = json(&out);
        let message = finding(&document, "invalid_setting").expect("a finding")["message"].as_str().unwrap().to_owned();
        assert_eq!(message, format!("parameters: {said}"));
    }
}

const CHANGING: &str = "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; \
     CREATE TABLE app.seen (id bigint, at timestamptz, size bigint, type text); \
     GRANT INSERT ON app.seen TO relay; \
     ALTER TABLE public.bookings ADD COLUMN day date NOT NULL DEFAULT '2026-01-02', ADD COLUMN size integer";
const CHANGED: &str = "INSERT INTO app.seen VALUES ($1, $2, $3, pg_typeof($2)::text || ' ' || pg_typeof($3)::text)";
const QUICK: &str = "on_poison = \"dead_letter\"\n[relay.poll]\nmax = \"5ms\"\n";

// Guarantee: read-models.types
#[tokio::test(flavor = "multi_thread")]
async fn a_column_whose_type_is_changed_is_given_to_the_statement_in_its_new_type() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(CHANGING).await.unwrap();
    let relays = relay("seen", QUICK, CHANGED, r#""id", "day", "size""#, "");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    let newest = async || {
        let sql = "SELECT b.day::timestamptz = s.at AND b.size = s.size, s.type \
                   FROM public.bookings AS b LEFT JOIN app.seen AS s USING (id) ORDER BY id DESC LIMIT 1";
        let row = owner.query_one(sql, &[]).await.unwrap();
        row.get::<_, Option<bool>>(0).map(|same| (same, row.get::<_, String>(1)))
    };
    owner.batch_execute("INSERT INTO public.bookings (size) VALUES (1)").await.unwrap();
    eventually(PATIENCE * 2, async || newest().await.is_some()).await;
    // The row comes with the change: the catalogue is read every second, and the relay looks every few milliseconds.
    for _ in 0..4 {
        for (change, row, types) in [
            ("day TYPE timestamptz", "('2026-01-02 17:30+00', 1)", "timestamp with time zone integer"),
            ("size TYPE bigint", "('2026-01-02 17:30+00', 3000000000)", "timestamp with time zone bigint"),
            ("day TYPE date", "('2026-01-03', 3000000000)", "date bigint"),
        ] {
            let sql = format!(
                "ALTER TABLE public.bookings ALTER COLUMN {change}; INSERT INTO public.bookings (day, size) VALUES {row}"
            );
            owner.batch_execute(&sql).await.unwrap();
            eventually(PATIENCE * 2, async || newest().await.is_some()).await;
            assert_eq!(newest().await, Some((true, types.to_owned())), "{change}");
        }
        let back = "ALTER TABLE public.bookings ALTER COLUMN size TYPE integer USING 1";
        owner.batch_execute(back).await.unwrap();
    }
    assert!(!is_halted(&owner, "seen").await);
    let letters = "SELECT count(*) FROM outbox.dead_letter";
    assert_eq!(owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0), 0);
    replica.stop().await;
}

// Guarantee: read-models.procedures
#[tokio::test(flavor = "multi_thread")]
async fn a_procedure_may_be_called_and_one_that_commits_halts_its_relay_and_changes_nothing() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; CREATE TABLE app.seen (id bigint, customer text); \
             GRANT INSERT ON app.seen TO relay; \
             CREATE PROCEDURE app.see(id bigint, customer text) LANGUAGE plpgsql AS \
             'BEGIN INSERT INTO app.seen VALUES (id, customer); END'; \
             CREATE PROCEDURE app.see_and_commit(id bigint, customer text) LANGUAGE plpgsql AS \
             'BEGIN INSERT INTO app.seen VALUES (id, customer); COMMIT; END'; \
             INSERT INTO public.bookings (customer) VALUES ('a'), ('b')",
        )
        .await
        .unwrap();
    let parameters = r#""id", "customer""#;
    let commits = relay("commits", "", "CALL app.see_and_commit($1, $2)", parameters, "");
    let replica = Replica::start(&config(&database, "relay", None, &commits), "r1");
    let (_, error) = halted(&owner, "commits").await;
    assert_eq!((&error["code"], &error["class"]), (&Value::from("sql_2D000"), &Value::from("fatal")), "{error}");
    replica.stop().await;
    let seen = async || {
        let sql = "SELECT COALESCE(array_agg(id ORDER BY id), '{}') FROM app.seen";
        owner.query_one(sql, &[]).await.unwrap().get::<_, Vec<i64>>(0)
    };
    assert!(seen().await.is_empty());
    owner.batch_execute("DELETE FROM outbox.cursor").await.unwrap(); // the next relay is no renamed one
    let calls = relay("calls", "", "CALL app.see($1, $2)", parameters, "");
    let replica = Replica::start(&config(&database, "relay", None, &calls), "r1");
    eventually(PATIENCE * 2, async || seen().await == [1, 2]).await;
    replica.stop().await;
}
