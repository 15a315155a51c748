//! A statement that cannot run stands in `check` and halts its relay at the start, with the reason.

use serde_json::Value;

use super::{BY_ROW, customers, relay};
use crate::support::outside::{finding, halted, json, mended};
use crate::support::{CLOCK, PATIENCE, Replica, bookings, config, database, eventually, outbox_relay, toml};

const PARAMETERS: &str = r#""customer", "payload", "id""#;

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
    for (breaks, mends, statement, code, said) in [
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
        owner.batch_execute(mends).await.unwrap();
        mended(&owner, "customers").await;
        let (exit, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
        assert_eq!(exit, Some(0), "{out}{log}");
        assert_eq!(finding(&json(&out), "statement").expect("a finding")["level"], Value::from("ok"));
        replica.stop().await;
    }
    let count = owner.query_one("SELECT bookings FROM app.customers", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 1, "checking runs nothing");
}

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

#[tokio::test(flavor = "multi_thread")]
async fn a_column_whose_type_is_changed_is_given_to_the_statement_in_its_new_type() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; CREATE TABLE app.seen (id bigint, type text); \
             GRANT INSERT ON app.seen TO relay; ALTER TABLE public.bookings ADD COLUMN size integer; \
             INSERT INTO public.bookings (size) VALUES (1)",
        )
        .await
        .unwrap();
    let statement = "INSERT INTO app.seen VALUES ($1, pg_typeof($2)::text)";
    let relays = relay("seen", "", statement, r#""id", "size""#, "");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    let seen = async || {
        let sql = "SELECT COALESCE(array_agg(type ORDER BY id), '{}') FROM app.seen";
        owner.query_one(sql, &[]).await.unwrap().get::<_, Vec<String>>(0)
    };
    eventually(PATIENCE * 2, async || seen().await == ["integer"]).await;
    owner.batch_execute("ALTER TABLE public.bookings ALTER COLUMN size TYPE bigint").await.unwrap();
    // The catalogue is read every second: until then a value that fits is taken in the old type.
    eventually(PATIENCE * 2, async || {
        owner.batch_execute("INSERT INTO public.bookings (size) VALUES (2)").await.unwrap();
        seen().await.last().is_some_and(|last| last == "bigint")
    })
    .await;
    owner.batch_execute("INSERT INTO public.bookings (size) VALUES (3000000000)").await.unwrap();
    let all = "SELECT count(*) FROM public.bookings";
    let rows: i64 = owner.query_one(all, &[]).await.unwrap().get(0);
    eventually(PATIENCE * 2, async || seen().await.len() as i64 == rows).await;
    replica.stop().await;
}

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
    let calls = relay("calls", "", "CALL app.see($1, $2)", parameters, "");
    let replica = Replica::start(&config(&database, "relay", None, &calls), "r1");
    eventually(PATIENCE * 2, async || seen().await == [1, 2]).await;
    replica.stop().await;
}
