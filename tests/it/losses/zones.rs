//! Rows whose local time is no instant in the zone of the relay: no position can be at them, and none of them is passed.

use crate::support::outside::{halted, printed, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// 14 hours east of UTC: local times of 4714-11-24 BC before 14:00 are before the first instant that PostgreSQL knows.
const EAST: &str = "Etc/GMT-14";

fn zoned(name: &str, zone: &str) -> String {
    stdout_relay(name, "").replace("[relay.sink", &format!("time_zone = \"{zone}\"\n[relay.sink"))
}

/// A table of local times, read by `s`, beside another one, read by `other`.
async fn tables(database: &Database) -> (tokio_postgres::Client, String) {
    let owner = bookings(database, "timestamp NOT NULL").await;
    let other = format!(
        "CREATE TABLE public.other (id bigint PRIMARY KEY, created_at {CLOCK}); \
                         CREATE INDEX ON public.other (created_at, id); GRANT SELECT ON public.other TO relay"
    );
    owner.batch_execute(&other).await.unwrap();
    let relays = zoned("s", EAST) + &stdout_relay("other", "").replace("public.bookings", "public.other");
    (owner, toml(database, "relay", None, &relays))
}

async fn ends(code: i32, text: &str, args: &[&str]) -> String {
    let (found, out, log) = outbox_relay(text, args).await;
    assert_eq!(found, Some(code), "{args:?}\n{out}\n{log}");
    out
}

/// PostgreSQL fails for such a row, and with it for every statement that reads it: the stream retried that for ever, and named no row.
// Guarantee: failures.no-instant
#[tokio::test(flavor = "multi_thread")]
async fn row_without_instant_halts_by_name_and_others_flow() {
    let database = database().await;
    let (owner, text) = tables(&database).await;
    let insert = "INSERT INTO bookings (created_at) VALUES ('-infinity'), ('4714-11-24 13:59:59.999999 BC'), \
                  ('4714-11-24 14:00:00 BC'), ('2020-01-01'), ('infinity'), ('294276-12-31 23:59:59.999999'); \
                  INSERT INTO other VALUES (1), (2)";
    owner.batch_execute(insert).await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    let (id, error) = halted(&owner, "s").await;
    assert_eq!(
        (id, &error["class"], &error["code"]),
        (None, &"fatal".into(), &"created_at_no_instant".into()),
        "{error}"
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("row 2 of public.bookings has 4714-11-24 13:59:59.999999 BC"), "{message}");
    eventually(PATIENCE, || async { printed(&process, "other") == ["1", "2"] }).await;
    assert_eq!(printed(&process, "s"), ["1"], "the row before it is delivered");
    let why = ends(3, &text, &["cursor", "why", "s"]).await;
    assert!(why.contains("row 2 of public.bookings") && why.contains("UPDATE or DELETE"), "{why}");
    // What the hint says.
    owner.batch_execute("UPDATE bookings SET created_at = '2021-01-01' WHERE id = 2").await.unwrap();
    ends(0, &text, &["cursor", "resume", "s"]).await;
    eventually(PATIENCE, || async { printed(&process, "s") == ["1", "3", "4", "2"] }).await;
}

/// The newest row of a table is asked for before a turn begins: no turn could name such a row.
// Guarantee: failures.no-instant
#[tokio::test(flavor = "multi_thread")]
async fn only_row_without_instant_is_named_too() {
    let database = database().await;
    let (owner, text) = tables(&database).await;
    owner.batch_execute("INSERT INTO bookings (created_at) VALUES ('4714-11-24 BC')").await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    let (_, error) = halted(&owner, "s").await;
    assert_eq!(error["code"], "created_at_no_instant", "{error}");
    owner.batch_execute("DELETE FROM bookings; INSERT INTO bookings (created_at) VALUES ('2020-01-01')").await.unwrap();
    ends(0, &text, &["cursor", "resume", "s"]).await;
    eventually(PATIENCE, || async { printed(&process, "s") == ["2"] }).await;
}

/// Looking for late rows compares the instant of each of them: any row that was inserted so stopped the stream.
// Guarantee: failures.no-instant
#[tokio::test(flavor = "multi_thread")]
async fn late_row_without_instant_is_delivered() {
    let database = database().await;
    let (owner, text) = tables(&database).await;
    let swept = "ALTER TABLE bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                 CREATE INDEX ON bookings (txid, created_at, id); INSERT INTO bookings (created_at) VALUES ('2020-01-01')";
    owner.batch_execute(swept).await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    let late = "INSERT INTO bookings (created_at) VALUES ('4714-11-24 01:00:00 BC'), ('4714-11-24 BC'), ('2019-01-01')";
    owner.batch_execute(late).await.unwrap();
    owner.batch_execute("INSERT INTO bookings (created_at) VALUES ('2021-01-01')").await.unwrap();
    eventually(PATIENCE * 2, || async { printed(&process, "s").len() == 5 }).await;
    let mut ids = printed(&process, "s");
    ids.sort();
    assert_eq!(ids, ["1", "2", "3", "4", "5"], "each once");
}

/// West of UTC the last hours of such a column are behind the last instant.
#[tokio::test(flavor = "multi_thread")]
async fn last_local_times_stop_neither_relay_nor_why() {
    let database = database().await;
    let owner = bookings(&database, "timestamp NOT NULL").await;
    let text = toml(&database, "relay", None, &zoned("s", "Etc/GMT+12"));
    let insert =
        "INSERT INTO bookings (created_at) VALUES ('2020-01-01'), ('294276-12-31 23:59:59.999999'), ('infinity')";
    owner.batch_execute(insert).await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    let why = ends(0, &text, &["cursor", "why", "s"]).await;
    assert!(why.contains("created_at infinity and is never delivered"), "{why}");
    ends(0, &text, &["check"]).await;
}
