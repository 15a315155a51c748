//! `outbox.message` by days: what may be dropped, and what nobody can send.

use rustix::process::Signal;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::{prune, told};
use crate::support::outside::{finding, json, printed, stdout_relay};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

mod away;
mod days;
mod held;
mod kills;

/// `[retention]` of partitions, and a relay of each of these names that prints `outbox.message`.
fn text(database: &Database, role: &str, relays: &[&str]) -> String {
    let relays = relays.iter().map(|name| stdout_relay(name, "").replace("public.bookings", "outbox.message"));
    let relays: String = relays.collect();
    toml(database, role, None, &format!("[retention]\nmessages = \"7d\"\nevery = \"1h\"\n{relays}"))
}

/// The same without a time: what a test prunes, it prunes itself.
fn served(text: &str) -> String {
    text.replace("messages = \"7d\"\n", "")
}

/// Ten days ago, as partitions are named and as SQL has it.
async fn past(owner: &Client) -> (String, String) {
    let sql = "SELECT 'message_' || to_char(d, 'YYYYMMDD'), d::text \
               FROM (SELECT (now() AT TIME ZONE 'UTC')::date - 10 AS d) AS x";
    let row = owner.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// A partition of that day, as it would be there by now, with two rows.
async fn aged(owner: &Client) -> String {
    let (name, day) = past(owner).await;
    owner
        .batch_execute(&format!(
            "SET timezone = 'UTC'; GRANT SELECT ON outbox.message TO relay; GRANT INSERT ON outbox.message TO app; \
             GRANT USAGE ON SCHEMA outbox TO app; \
             CREATE TABLE outbox.{name} PARTITION OF outbox.message FOR VALUES FROM ('{day}') TO ('{day}'::date + 1)"
        ))
        .await
        .unwrap();
    for id in 1..=2 {
        late(owner, id).await;
    }
    name
}

/// A row of ten days ago: the stamp is off for one transaction, which only the owner can do.
async fn late(owner: &Client, minute: i32) {
    let (name, day) = past(owner).await;
    owner
        .batch_execute(&format!(
            "ALTER TABLE outbox.{name} DISABLE TRIGGER zz_stamp_created_at; \
             INSERT INTO outbox.message (topic, created_at) VALUES ('t', '{day}'::timestamptz + interval '{minute} min'); \
             ALTER TABLE outbox.{name} ENABLE ALWAYS TRIGGER zz_stamp_created_at"
        ))
        .await
        .unwrap();
}

async fn insert(client: &Client) {
    client.batch_execute("INSERT INTO outbox.message (topic, payload) VALUES ('t', 'p')").await.unwrap();
}

/// Waits until a relay has printed so many rows and stands behind the last.
async fn passed(owner: &Client, process: &Process, relay: &str, rows: usize) {
    let sql = "SELECT position_id FROM outbox.cursor WHERE name = $1";
    let there = eventually(PATIENCE * 4, || async {
        let printed = printed(process, relay);
        let stands = owner.query_opt(sql, &[&relay]).await.unwrap().and_then(|row| row.get::<_, Option<String>>(0));
        printed.len() == rows && stands.as_ref() == printed.last()
    });
    if tokio::time::timeout(PATIENCE * 2, there).await.is_err() {
        panic!("{rows} rows, not {:?}: {}", printed(process, relay), process.log());
    }
}

async fn exists(owner: &Client, name: &str) -> bool {
    let sql = "SELECT to_regclass('outbox.' || $1) IS NOT NULL";
    owner.query_one(sql, &[&name]).await.unwrap().get(0)
}

/// Who holds the partition, by a dry run.
async fn holder(text: &str, name: &str) -> Option<String> {
    let document = prune(text, "--dry-run").await;
    let (free, gone, kept) = told(&document, "messages", name);
    assert_eq!((usize::try_from(free).unwrap() + kept.len(), gone), (1, 0), "{document}");
    kept.first().map(|(_, held_by)| (*held_by).to_owned())
}

// Guarantee: retention.drop
#[tokio::test(flavor = "multi_thread")]
async fn a_day_goes_when_nobody_needs_it_and_a_refusal_says_who_does() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let day = aged(&owner).await;
    let text = text(&database, "relay", &["m"]);
    let nobody = "no cursor has ever read outbox.message";
    assert_eq!(holder(&self::text(&database, "relay", &[]), &day).await.as_deref(), Some(nobody));
    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "messages", "outbox.message").2, [(None, "relay m, which has no cursor yet")]);
    let mut process = Process::spawn(&served(&text), &["run"]);
    passed(&owner, &process, "m", 2).await;
    assert_eq!(holder(&text, &day).await, None, "a cursor that rests at the last row has passed the day");
    let app = database.connect("app").await;
    insert(&app).await;
    passed(&owner, &process, "m", 3).await;

    let other = self::text(&database, "relay", &["other"]);
    assert_eq!(outbox_relay(&other, &["cursor", "create", "other", "--beginning"]).await.0, Some(0));
    outbox_relay(&other, &["cursor", "pause", "other"]).await;
    assert_eq!(holder(&text, &day).await.as_deref(), Some("cursor other at the beginning, paused"));
    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "messages", &day).1, 0);
    assert!(exists(&owner, &day).await, "held by a relay that is not in this configuration");
    owner.batch_execute("DELETE FROM outbox.cursor WHERE name = 'other'").await.unwrap();

    owner
        .batch_execute(
            "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, \
             error, state, dead_lettered_by) SELECT 'm', 'outbox.message', created_at, '2', 'stdout', 'x', '{}', '{}', \
             '{}', 'dead', 'x' FROM outbox.message WHERE id = 2",
        )
        .await
        .unwrap();
    assert_eq!(holder(&text, &day).await.as_deref(), Some("1 open dead letters of cursor m"));
    owner.batch_execute("UPDATE outbox.dead_letter SET state = 'discarded', resolved_at = now()").await.unwrap();

    // A row below the position, which only an owner can write who switches the stamp off. It holds the day until it has been sent.
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    assert_eq!(printed(&process, "m"), ["1", "2", "3"]);
    late(&owner, 0).await;
    assert_eq!(holder(&text, &day).await.as_deref(), Some("rows that cursor m could not see at its last read"));
    let process = Process::spawn(&served(&text), &["run"]);
    eventually(PATIENCE * 4, || async { printed(&process, "m") == ["4"] && holder(&text, &day).await.is_none() }).await;

    let mut writer = database.connect("postgres").await;
    writer.batch_execute("SET application_name = 'backfill'").await.unwrap();
    let open = writer.transaction().await.unwrap();
    open.batch_execute("UPDATE outbox.message SET payload = 'x' WHERE id = 1").await.unwrap();
    let pid: i32 = open.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "messages", &day).1, 0);
    let row = owner.query_one("SELECT held_by FROM outbox.prune_messages('7 days')", &[]).await.unwrap();
    assert!(row.get::<_, String>(0).contains(&format!("pid {pid} (backfill)")), "{row:?}");
    open.rollback().await.unwrap();

    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "messages", &day).1, 1, "{document}");
    assert!(!exists(&owner, &day).await);
    insert(&app).await;
    passed(&owner, &process, "m", 2).await;
    assert_eq!(printed(&process, "m"), ["4", "5"]);
    assert!(!process.log().contains("halted"), "{}", process.log());
}

// Guarantee: retention.proven
#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_outbox_is_proven_and_no_value_that_is_sent_chooses_place_or_partition() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let day = aged(&owner).await;
    let text = text(&database, "relay", &["m"]);
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let proven = json(&out);
    let proven = finding(&proven, "created_at_proven").expect("proven by the default rule");
    assert!(proven["message"].as_str().unwrap().ends_with("rule writers, proven"), "{proven}");

    let app = database.connect("app").await;
    let before: String = owner.query_one("SELECT now()::text", &[]).await.unwrap().get(0);
    let sent = |at: &str| format!("INSERT INTO outbox.message (topic, created_at) VALUES ('sent', {at})");
    app.batch_execute(&sent("date_trunc('day', now(), 'UTC')")).await.unwrap();
    for forged in ["now() - interval '10 days'", "now() + interval '1 day'", "'1990-01-01'", "'2050-01-01'"] {
        let error = app.batch_execute(&sent(forged)).await.expect_err(forged);
        let code = error.code().unwrap();
        assert!(
            [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::CHECK_VIOLATION].contains(&code),
            "{forged}: {error:?}"
        );
    }
    for odd in ["NULL", "'infinity'", "'-infinity'"] {
        app.batch_execute(&sent(odd)).await.expect_err(odd);
    }
    // Past the root, which only the owner may.
    let today: String = owner
        .query_one("SELECT 'outbox.message_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')", &[])
        .await
        .unwrap()
        .get(0);
    let leaf = |table: &str, at: &str| {
        format!("INSERT INTO {table} (id, topic, created_at) OVERRIDING SYSTEM VALUE VALUES (900, 'sent', {at})")
    };
    owner.batch_execute(&leaf(&today, "date_trunc('day', now(), 'UTC')")).await.unwrap();
    for (table, at) in [
        (today.as_str(), "now() - interval '10 days'"),
        (&format!("outbox.{day}"), "now() - interval '10 days'"),
        (&format!("outbox.{day}"), "now()"),
    ] {
        owner.batch_execute(&leaf(table, at)).await.expect_err(at);
    }
    owner
        .batch_execute("UPDATE outbox.message SET created_at = '1990-01-01', payload = 'u' WHERE topic = 'sent'")
        .await
        .unwrap();
    let sql = "SELECT count(*) FROM outbox.message WHERE topic = 'sent' AND payload = 'u' AND created_at >= $1::text::timestamptz";
    let stamped: i64 = owner.query_one(sql, &[&before]).await.unwrap().get(0);
    assert_eq!(stamped, 2, "each has the clock of its insert");
    let denied = app.batch_execute(&leaf(&today, "now()")).await.expect_err("no right on a partition");
    assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
}

// Guarantee: retention.midnight
#[tokio::test(flavor = "multi_thread")]
async fn at_midnight_a_row_gets_the_last_instant_of_its_day_or_is_refused_with_a_code_to_retry() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    aged(&owner).await;
    let (_, day) = past(&owner).await;
    // The function itself, with a clock that can be set.
    owner
        .batch_execute(
            "CREATE TABLE public.clock (at timestamptz); INSERT INTO public.clock VALUES (now()); \
             CREATE FUNCTION public.clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT at FROM public.clock'; \
             DO $$ BEGIN EXECUTE replace(pg_get_functiondef('outbox.stamp_created_at_by_day'::regproc), \
             'pg_catalog.clock_timestamp()', 'public.clock()'); END $$",
        )
        .await
        .unwrap();
    // The value of the default, the clock behind it, and what is stored: seconds from the day's end on.
    let (at, last) = (86_400.0_f64, 86_399.999_999_f64);
    for (value, clock, stored) in [
        (-5.0, -1.0, Ok(at - 1.0)),
        (-0.000_1, -0.000_001, Ok(last)),
        (-0.000_1, 0.0, Ok(last)),
        (-0.000_1, 0.000_999, Ok(last)),
        (-0.000_1, 0.001, Err(())),
        (-3_600.0, 0.5, Err(())),
        (-1.0, 86_400.5, Err(())),
    ] {
        let end = format!("('{day}'::date + 1)::timestamptz");
        let instant = |seconds: f64| format!("{end} + interval '{seconds:.6} s'");
        owner.batch_execute(&format!("UPDATE public.clock SET at = {}", instant(clock))).await.unwrap();
        let sql = format!(
            "INSERT INTO outbox.message (topic, created_at) VALUES ('m', {}) \
             RETURNING EXTRACT(EPOCH FROM created_at - '{day}'::timestamptz)::float8",
            instant(value)
        );
        match (owner.query_one(&sql, &[]).await, stored) {
            (Ok(row), Ok(stored)) => assert!((row.get::<_, f64>(0) - stored).abs() < 1e-7, "{value} {clock}: {row:?}"),
            (Err(error), Err(())) => {
                let db = error.as_db_error().unwrap();
                assert_eq!(db.code(), &SqlState::T_R_SERIALIZATION_FAILURE, "{value} {clock}");
                assert!(db.hint().unwrap().contains("try the transaction again"), "{db:?}");
            }
            (other, stored) => panic!("{value} {clock}: {other:?}, expected {stored:?}"),
        }
    }
}
