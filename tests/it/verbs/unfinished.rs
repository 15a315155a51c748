//! What `cursor remove` prints when work of the relay is not finished: each printed command, run as it stands, finishes it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;

use tokio_postgres::Client;

use super::{ends, insert};
use crate::support::outside::stdout_relay;
use crate::support::receiver::Receiver;
use crate::support::{CLOCK, bookings, database, outbox_relay, toml};

/// Runs `cursor remove` and the commands that it prints until it succeeds: where it leaves a choice, this one. Gives all hints.
async fn followed(owner: &Client, text: &str, relay: &str, choice: usize) -> String {
    let mut hints = String::new();
    for _ in 0..5 {
        let (code, _, log) = outbox_relay(text, &["cursor", "remove", relay, "--yes"]).await;
        if code == Some(0) {
            return hints;
        }
        hints += &log;
        for hint in log.lines().filter_map(|line| Some(line.split_once(" -> ")?.1)) {
            let choices: Vec<&str> = hint.split("; or ").collect();
            for command in choices[choice.min(choices.len() - 1)].split('`').skip(1).step_by(2) {
                follow(owner, text, command).await;
            }
        }
    }
    panic!("not finished by what is printed:\n{hints}");
}

/// Runs one command as an operator would paste it; those that ask get --yes, because this is no terminal.
async fn follow(owner: &Client, text: &str, command: &str) {
    let Some(args) = command.strip_prefix("outbox-relay ") else {
        return owner.batch_execute(&command.replace("'NEW'", "'heir'")).await.unwrap();
    };
    let mut line = format!("\"$RELAY\" {args}");
    if args.starts_with("dead-letter ") || args.starts_with("request redrive") || args.starts_with("request settle") {
        line += " --yes";
    }
    // Of another name each time, and for this user alone: it has the password.
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]).env("RELAY", env!("CARGO_BIN_EXE_outbox-relay")).env("OUTBOX_RELAY_CONFIG", file.path());
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Dead letters of a cursor, as a turn writes them, for rows of `public.bookings`.
async fn letters(owner: &Client, cursor: &str, ids: &str) {
    let sql = format!(
        "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error, \
         dead_lettered_by) SELECT '{cursor}', 'public.bookings', created_at, id::text, 'stdout', '-', '{{}}', '{{}}', '{{}}', 'r' \
         FROM bookings WHERE id IN ({ids})"
    );
    owner.batch_execute(&sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_hints_finish_work_of_shards() {
    for choice in [0, 1] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let more = "shards = 2\nshard_key = \"customer\"\nguarantee = \"at_most_once\"";
        let text = toml(&database, "relay", None, &stdout_relay("many", more));
        ends(0, &toml(&database, "postgres", None, &stdout_relay("many", more)), &["migrate", "up", "--indexes"]).await;
        insert(&owner, 5).await;
        ends(0, &text, &["run", "--once"]).await;
        letters(&owner, "many#0", "1, 2").await;
        letters(&owner, "many#1", "3").await;
        // As a replica leaves it that was killed while it sent row 4.
        owner
            .batch_execute(
                "UPDATE outbox.cursor SET token = jsonb_build_object('token', 't', 'by', 'r', 'xid', '1', 'rows', (SELECT \
                 jsonb_agg(jsonb_build_object('id', id::text, 'created_at', created_at)) FROM bookings WHERE id = 4)) \
                 WHERE name = 'many#1'",
            )
            .await
            .unwrap();
        let hints = followed(&owner, &text, "many", choice).await;
        println!("{hints}");
        for part in ["1 row in flight of many#1 -> ", "2 dead letters of many#0 -> ", "1 unknown outcome of many#1 -> "]
        {
            assert!(hints.contains(part), "{hints}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_hints_finish_interrupted_due_work() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = database.connect("postgres").await;
    let mut relay = String::from("[[relay]]\nname = \"due\"\nguarantee = \"at_most_once\"\n[relay.source.pending]\n");
    write!(
        relay,
        "table = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\nsent = \"done\"\n[relay.sink.http]\nurl = \"{}/x\"\n",
        receiver.url()
    )
    .unwrap();
    owner
        .batch_execute(
            "CREATE TABLE todos (id text PRIMARY KEY, at timestamptz NOT NULL, done boolean NOT NULL DEFAULT false); \
             CREATE INDEX ON todos (at, id) WHERE NOT done; GRANT SELECT, UPDATE (done) ON todos TO relay",
        )
        .await
        .unwrap();
    let text = toml(&database, "relay", None, &relay);
    ends(0, &text, &["run", "--once"]).await;
    // Two rows that were being sent when their replica was killed, one of an odd key; one that provably was not sent.
    owner
        .batch_execute(
            "INSERT INTO todos SELECT k, now() - interval '1 hour', true FROM unnest(ARRAY['it''s \"x\"', '7', '8']) AS k; \
             INSERT INTO outbox.claim (relay, key, due_at, state, token, marked, claimed_by, expires_at, not_before) \
             SELECT 'due', ARRAY[id], at, CASE id WHEN '8' THEN 'waiting' ELSE 'sending' END, 't', true, 'r', \
             now() - interval '1 minute', now() FROM todos",
        )
        .await
        .unwrap();
    let hints = followed(&owner, &text, "due", 0).await;
    println!("{hints}");
    assert!(hints.contains("  3 unfinished sends -> ") && hints.contains("  2 unknown outcomes -> "), "{hints}");
    assert_eq!(receiver.requests().len(), 1, "only what provably had not been sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_hints_finish_what_tables_of_the_schema_hold() {
    for choice in [0, 1] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let text = toml(&database, "relay", None, &stdout_relay("s", ""));
        insert(&owner, 1).await;
        ends(0, &text, &["run", "--once"]).await;
        letters(&owner, "s", "1").await;
        owner
            .batch_execute(
                "INSERT INTO outbox.claim (relay, key, due_at, state, token, claimed_by) SELECT 's', ARRAY[n::text], now(), \
                 'unknown', 't', 'r' FROM generate_series(1, 21) AS n; \
                 INSERT INTO outbox.schedule (name, relay, rule) VALUES ('daily', 's', 'FREQ=DAILY')",
            )
            .await
            .unwrap();
        let hints = followed(&owner, &text, "s", choice).await;
        println!("{hints}");
        // More unknown outcomes than one command names.
        assert!(hints.contains("  21 unknown outcomes -> ") && hints.contains("  1 unknown outcome -> "), "{hints}");
    }
}
