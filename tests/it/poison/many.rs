//! `dead-letter` on more than an operator would read: many of them, and large ones.

use std::process::{Output, Stdio};

use serde_json::Value;
use tokio_postgres::Client;

use crate::support::outside::{json, stdout_relay};
use crate::support::{CLOCK, Database, bookings, database, outbox_relay, toml};

/// More than two transactions of a decision.
const MANY: usize = 12_000;

/// A relay `r` that has a cursor.
async fn stage() -> (Database, Client, String) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("r", "on_poison = \"dead_letter\""));
    ends(0, &text, &["run", "--once"]).await;
    (database, owner, text)
}

/// So many dead letters of the relay, each with a payload of so many bytes.
async fn letters(owner: &Client, count: usize, bytes: usize) {
    let sql = format!(
        "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, payload, fields, field_values, \
         error, dead_lettered_by) SELECT 'r', 'public.bookings', now() - n * interval '1 second', n::text, 'stdout', '-', \
         convert_to(repeat('x', {bytes}), 'UTF8'), '{{}}', '{{}}', '{{\"code\": \"http_422\"}}', 'r1' \
         FROM generate_series(1, {count}) AS n"
    );
    owner.batch_execute(&sql).await.unwrap();
}

async fn ends(code: i32, text: &str, args: &[&str]) -> (String, String) {
    let (found, out, log) = outbox_relay(text, args).await;
    assert_eq!(found, Some(code), "{args:?}\n{log}");
    (out, log)
}

async fn states(owner: &Client) -> Vec<(String, i64)> {
    let sql = "SELECT state, count(*) FROM outbox.dead_letter GROUP BY state ORDER BY state";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// How many letters each note of this verb names.
async fn noted(owner: &Client, verb: &str) -> Vec<i32> {
    let sql = "SELECT jsonb_array_length(detail -> 'ids') FROM outbox.operation WHERE verb = $1 ORDER BY id";
    owner.query(sql, &[&verb]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_dead_letters_are_listed_and_more_when_they_are_asked_for() {
    let (_database, owner, text) = stage().await;
    letters(&owner, 1001, 1).await;
    let listed = |out: &str| json(out)["dead_letters"].as_array().unwrap().len();
    let (out, log) = ends(0, &text, &["dead-letter", "list", "-o", "json"]).await;
    assert_eq!(listed(&out), 1000);
    assert!(log.contains("there may be more than these 1000") && log.contains("--limit"), "{log}");
    let (out, log) = ends(0, &text, &["dead-letter", "list", "--limit", "2000", "-o", "json"]).await;
    assert_eq!((listed(&out), log.as_str()), (1001, ""));
    assert_eq!(json(&out)["dead_letters"][0]["key"], Value::from(vec!["1001"]), "the oldest row first");
}

/// Slowed down, so that one statement about all of them takes longer than a turn's statement may.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_about_many_dead_letters_is_carried_out_in_parts_however_long_it_takes() {
    let (_database, owner, text) = stage().await;
    letters(&owner, MANY, 1).await;
    owner
        .batch_execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_catalog.pg_sleep(0.001) WHERE NEW.id % 3 = 0; RETURN NEW; END $$; \
             CREATE TRIGGER slow BEFORE UPDATE ON outbox.dead_letter FOR EACH ROW EXECUTE FUNCTION slow()",
        )
        .await
        .unwrap();
    for (verb, state, parts) in [("redrive", "redriving", 3), ("discard", "discarded", 12)] {
        let args = ["dead-letter", verb, "--cursor", "r", "--yes", "--timeout", "2m"];
        let (out, _) = ends(0, &text, &args).await;
        assert!(out.contains("and 11980 more\n") && out.contains(&format!("{MANY} of {MANY}: ")), "{out}");
        assert_eq!(out.lines().count(), 23, "a head, twenty of them, how many more, what was done: {out}");
        assert_eq!(states(&owner).await, [(state.to_owned(), 12_000)]);
        let noted = noted(&owner, &format!("dead-letter {verb}")).await;
        assert_eq!((noted.len(), noted.iter().sum::<i32>()), (parts, 12_000), "{noted:?}");
    }
}

/// Runs a verb that may use so much memory.
async fn limited(kilobytes: usize, text: &str, args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("outbox-relay.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = tokio::process::Command::new("/bin/sh");
    command.arg("-c").arg(format!("ulimit -v {kilobytes} && exec \"$0\" \"$@\""));
    command.arg(env!("CARGO_BIN_EXE_outbox-relay")).arg("--config").arg(&file).args(args);
    command.stdin(Stdio::null()).output().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_payloads_are_not_read_to_decide_about_them_by_number() {
    let (_database, owner, text) = stage().await;
    letters(&owner, 40, 15_000_000).await;
    let sql = "SELECT id::text FROM outbox.dead_letter ORDER BY id";
    let ids: Vec<String> = owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    for verb in ["redrive", "discard"] {
        let args: Vec<&str> =
            ["dead-letter", verb, "--yes"].into_iter().chain(ids.iter().map(String::as_str)).collect();
        let ended = limited(450_000, &text, &args).await;
        let (out, log) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success() && out.contains("40 of 40: "), "{out}{log}");
    }
    let (out, _) = ends(0, &text, &["dead-letter", "show", &ids[0], "-o", "json"]).await;
    assert_eq!(json(&out)["payload"].as_str().map(str::len), Some(15_000_000), "one that is shown has it");
}
