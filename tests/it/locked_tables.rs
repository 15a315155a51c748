//! Sessions that lock tables as a whole: the source, by ALTER TABLE for example, or those of the schema outbox.

use outbox_testkit::postgres::{Options, Postgres};
use tokio_postgres::Client;

use crate::support::gateway::{Gateway, sms_relay};
use crate::support::outside::{json, printed, stdout_relay};
use crate::support::relays::toml_of;
use crate::support::servers::prepare;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

// Guarantee: commands.why-locked
#[tokio::test(flavor = "multi_thread")]
async fn why_names_the_session_that_locks_a_table_and_what_ends_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("a", ""));
    let process = Process::spawn(&text, &["run"]);
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    eventually(PATIENCE, async || process.out().lines().count() == 1).await;
    for table in ["public.bookings", "outbox.cursor", "outbox.dead_letter"] {
        let other = database.connect("postgres").await;
        let pid: i32 = other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        run(&other, &format!("SET application_name = 'deploy'; BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
            .await;
        let (code, out, log) = outbox_relay(&text, &["cursor", "why", "a", "-o", "json"]).await;
        let document = json(&out);
        println!("{document}");
        assert_eq!((code, &document["reason"]), (Some(3), &"locked".into()), "{out}{log}");
        let summary = document["summary"].as_str().unwrap();
        assert!(summary.contains(&format!("pid {pid} (deploy)")) && summary.contains(table), "{summary}");
        let fix = document["next_steps"][1].as_str().unwrap();
        assert_eq!(fix, format!("SELECT pg_terminate_backend({pid});"));
        // What is printed works.
        run(&owner, fix).await;
        eventually(PATIENCE, async || {
            let (_, out, _) = outbox_relay(&text, &["cursor", "why", "a", "-o", "json"]).await;
            json(&out)["ok"] == true
        })
        .await;
    }
}

// Guarantee: failures.share-lock
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_lets_the_cursor_be_read_and_not_written_has_no_row_repeated() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("a", ""));
    let process = Process::spawn(&text, &["run"]);
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    let failed = || process.log().matches("55P03").count();
    let printed = || printed(&process, "a");
    eventually(PATIENCE, async || printed().len() == 1).await;
    for (done, table) in [(1, "outbox.cursor"), (2, "outbox.audit_slice")] {
        let other = database.connect("postgres").await;
        run(&other, &format!("BEGIN; LOCK TABLE {table} IN SHARE MODE")).await;
        let before = failed();
        run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
        eventually(PATIENCE * 2, async || failed() >= before + 2).await;
        assert_eq!(printed().len(), done, "nothing is published that cannot be recorded");
        run(&other, "ROLLBACK").await;
        eventually(PATIENCE, async || printed().len() > done).await;
    }
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    eventually(PATIENCE, async || printed().last().is_some_and(|id| id == "4")).await;
    assert_eq!(printed(), ["1", "2", "3", "4"], "no row is repeated");
}

// Guarantee: commands.why-standby
#[tokio::test(flavor = "multi_thread")]
async fn why_says_that_a_commit_waits_for_a_standby_and_advises_no_end_of_its_session() {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let (gateway, owner) = (Gateway::start().await, postgres.connect("postgres", "template_outbox").await.unwrap());
    let table = format!(
        "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}, phone text DEFAULT '+1'); \
         CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay"
    );
    run(&owner, &table).await;
    let text = toml_of(&postgres.url("relay", "template_outbox"), None, &sms_relay("sms", &gateway, ""));
    let _process = Process::spawn(&text, &["run"]);
    run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
    eventually(PATIENCE, async || gateway.accepted() == ["1"]).await;
    // A commit that is still to come would wait for the standby, too.
    let stands = "SELECT count(*) FROM outbox.cursor WHERE position_id = '1'";
    eventually(PATIENCE, async || owner.query_one(stands, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    run(&owner, "ALTER SYSTEM SET synchronous_standby_names = 'away'").await;
    run(&owner, "SELECT pg_reload_conf(); SET synchronous_commit = local; INSERT INTO bookings DEFAULT VALUES").await;
    eventually(PATIENCE, async || gateway.accepted() == ["1", "2"]).await;
    run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
    let why = async || json(&outbox_relay(&text, &["cursor", "why", "sms", "-o", "json"]).await.1);
    eventually(PATIENCE * 2, async || {
        why().await["summary"].as_str().is_some_and(|summary| summary.contains("waits for a synchronous standby"))
    })
    .await;
    let document = why().await;
    println!("{document}");
    assert!(!document["next_steps"].to_string().contains("pg_terminate_backend"), "{document}");
    run(&owner, "ALTER SYSTEM RESET synchronous_standby_names").await;
    run(&owner, "SELECT pg_reload_conf()").await;
    eventually(PATIENCE, async || gateway.accepted() == ["1", "2", "3"]).await;
}
