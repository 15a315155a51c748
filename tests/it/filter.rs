//! `where` of a stream: rows that match are delivered, others are passed over.

use std::collections::BTreeSet;

use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::outside::{finding, json};
use crate::support::receiver::Receiver;
use crate::support::relays::parse;
use crate::support::{
    CLOCK, Database, PATIENCE, Process, Replica, bookings, broker, database, eventually, ids, kafka_relay,
    outbox_relay, toml, unique,
};

const WANTED: &str =
    "where = { status = \"confirmed\", region = [\"eu\", \"us\"], deleted_at = \"null\", paid = true }";

/// A relay with this filter.
fn filtered(relay: &str, filter: &str) -> String {
    relay.replace("table = \"public.bookings\"\n", &format!("table = \"public.bookings\"\n{filter}\n"))
}

async fn table(database: &Database) -> Client {
    let owner = bookings(database, CLOCK).await;
    owner
        .batch_execute(
            "ALTER TABLE bookings ADD status text DEFAULT 'confirmed', ADD region text DEFAULT 'eu', ADD deleted_at timestamptz, \
             ADD paid boolean DEFAULT true, ALTER payload SET DEFAULT 'p'",
        )
        .await
        .unwrap();
    owner
}

async fn run(owner: &Client, sql: &str) {
    owner.batch_execute(sql).await.unwrap();
}

async fn position(owner: &Client, cursor: &str) -> Option<String> {
    let sql = "SELECT position_id FROM outbox.cursor WHERE name = $1";
    owner.query_opt(sql, &[&cursor]).await.unwrap().and_then(|row| row.get(0))
}

// Guarantee: filter.matches
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_match_are_delivered_in_order_and_the_position_passes_the_others() {
    let database = database().await;
    let owner = table(&database).await;
    let receiver = Receiver::start();
    let text = toml(&database, "relay", None, &filtered(&receiver.relay("h", ""), WANTED));
    run(&owner, "INSERT INTO bookings (payload) VALUES ('1')").await;
    for other in [
        "(status) VALUES ('open')",
        "(status) VALUES (NULL)",
        "(region) VALUES ('asia')",
        "(deleted_at) VALUES (now())",
        "(paid) VALUES (false)",
        "(paid) VALUES (NULL)",
    ] {
        run(&owner, &format!("INSERT INTO bookings {other}")).await;
    }
    run(&owner, "INSERT INTO bookings (payload, region) VALUES ('8', 'us'), ('9', 'de')").await;
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "8"]).await;
    eventually(PATIENCE, async || position(&owner, "h").await.as_deref() == Some("9")).await;
    // A row that is changed so that it matches is passed all the same: what was passed is passed.
    run(&owner, "UPDATE bookings SET status = 'confirmed' WHERE id = 2").await;
    run(&owner, "INSERT INTO bookings (payload) VALUES ('10')").await;
    eventually(PATIENCE, async || receiver.accepted("h") == ["1", "8", "10"]).await;
    replica.stop().await;

    run(&owner, "INSERT INTO bookings (status) VALUES ('open'), ('confirmed'), ('open'), ('confirmed'), ('open')")
        .await;
    let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    assert_eq!(json(&out)["cursors"][0]["backlog_rows"], 2, "only rows that will be delivered wait: {out}");
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(receiver.accepted("h"), ["1", "8", "10", "12", "14"]);
    run(&owner, "INSERT INTO bookings (status) VALUES ('open')").await;
    let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    assert_eq!(
        (&json(&out)["cursors"][0]["backlog_rows"], &json(&out)["cursors"][0]["lag_seconds"]),
        (&0.into(), &0.0.into())
    );
}

// Guarantee: filter.cheap
#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_sends_one_by_one_passes_many_rows_in_one_turn() {
    let database = database().await;
    let owner = table(&database).await;
    let receiver = Receiver::start();
    let text = toml(&database, "relay", None, &filtered(&receiver.relay("h", ""), "where = { paid = false }"));
    run(&owner, "INSERT INTO bookings (paid) SELECT n % 5000 = 0 FROM generate_series(0, 19999) AS n").await;
    run(&owner, "UPDATE bookings SET paid = NOT paid").await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(receiver.accepted("h"), ["1", "5001", "10001", "15001"]);
    let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    run(&owner, "SELECT pg_stat_clear_snapshot()").await;
    let transactions: i64 = owner.query_one(sql, &[]).await.unwrap().get(0);
    assert!(transactions < 2000, "a turn for 500 rows and not for each: {transactions} transactions");
}

// Guarantee: filter.unread
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_does_not_match_is_never_poison_and_one_that_does_is_named_behind_others() {
    let database = database().await;
    let owner = table(&database).await;
    let receiver = Receiver::start();
    let relay = filtered(&receiver.relay("h", "on_poison = \"dead_letter\""), "where = { paid = true }");
    let text = toml(&database, "relay", None, &format!("{relay}[relay.turn]\nmax_row_bytes = \"64KiB\"\n"));
    run(
        &owner,
        "INSERT INTO bookings (payload, paid) VALUES ('1', true), (repeat('x', 100000), false), ('3', false), ('4', true), \
         ('5', false), (repeat('x', 100000), true), ('7', true)",
    )
    .await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(receiver.accepted("h"), ["1", "4", "7"]);
    let letters = owner.query("SELECT message_id FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!(letters.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["6"]);
}

// Guarantee: filter.matches
#[tokio::test(flavor = "multi_thread")]
async fn values_with_quotes_and_backslashes_are_constants_and_what_cannot_be_compared_is_refused_by_check_and_run() {
    let database = database().await;
    let owner = table(&database).await;
    let receiver = Receiver::start();
    let hostile = r"it's \ ' OR true --";
    let filter = format!("where = {{ status = '''{hostile}''' }}");
    let text = toml(&database, "relay", None, &filtered(&receiver.relay("h", ""), &filter));
    owner.execute("INSERT INTO bookings (status) VALUES ('x'), ($1)", &[&hostile]).await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(receiver.accepted("h"), ["2"]);
    for (filter, said) in [("where = { colour = 1 }", "colour"), ("where = { paid = \"blue\" }", "blue")] {
        let text = toml(&database, "relay", None, &filtered(&receiver.relay("h", ""), filter));
        let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
        let document = json(&out);
        let found = finding(&document, "column_unreadable").expect("named");
        assert!(code == Some(3) && found["message"].as_str().unwrap().contains(said), "{found}");
        let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "5s"]).await;
        assert!(code == Some(1) && log.contains(said), "{code:?} {log}");
    }
}

/// PostgreSQL takes such words for the day on which a session prepares its statement: another one in each replica, and none is told.
// Guarantee: filter.constant
#[tokio::test(flavor = "multi_thread")]
async fn words_that_mean_another_day_tomorrow_are_refused_by_name() {
    let database = database().await;
    let owner = table(&database).await;
    run(&owner, "CREATE DOMAIN day AS date; ALTER TABLE bookings ADD day day").await;
    let receiver = Receiver::start();
    let stream = receiver.relay("h", "");
    let pending = format!(
        "[[relay]]\nname = \"p\"\n[relay.source.pending]\ntable = \"public.bookings\"\nkey = [\"id\"]\ndue = \"created_at\"\n\
         where = {{ day = \"today\" }}\n[relay.sink.http]\nurl = \"{}/p\"\n",
        receiver.url()
    );
    for (relay, word) in [
        (filtered(&stream, "where = { deleted_at = [\"infinity\", \"Tomorrow 08:00\"] }"), "Tomorrow"),
        (filtered(&stream, "where = { day = \"now\" }"), "now"),
        (pending, "today"),
    ] {
        let text = toml(&database, "relay", None, &relay);
        let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
        let document = json(&out);
        let found = finding(&document, "where_not_constant").unwrap_or_else(|| panic!("{out}"));
        assert!(code == Some(3) && found["message"].as_str().unwrap().contains(&format!("{word:?}")), "{found}");
        let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "5s"]).await;
        assert!(code == Some(1) && log.contains("where_not_constant"), "{code:?} {log}");
    }
    // The same words of a text are a value like any other.
    run(&owner, "INSERT INTO bookings (status) VALUES ('open'), ('today')").await;
    let text = toml(&database, "relay", None, &filtered(&stream, "where = { status = \"today\" }"));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, receiver.accepted("h")), (Some(0), vec!["2".to_owned()]), "{log}");
}

// Guarantee: filter.late
#[tokio::test(flavor = "multi_thread")]
async fn a_late_row_comes_if_it_matches_and_only_then() {
    let database = database().await;
    let owner = table(&database).await;
    run(
        &owner,
        "ALTER TABLE bookings ADD txid xid8 NOT NULL DEFAULT pg_current_xact_id(); CREATE INDEX ON bookings (txid, created_at, id)",
    )
    .await;
    let receiver = Receiver::start();
    let text = toml(&database, "relay", None, &filtered(&receiver.relay("h", ""), "where = { paid = true }"));
    let replica = Replica::start(&parse(&text), "r1");
    run(&owner, "INSERT INTO bookings (payload) VALUES ('1')").await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1"]).await;
    let below = "(SELECT min(created_at) - interval '1 s' FROM bookings)";
    run(&owner, &format!("INSERT INTO bookings (created_at, paid) VALUES ({below}, false), ({below}, true)")).await;
    run(&owner, "INSERT INTO bookings (payload) VALUES ('4')").await;
    let distinct = async || receiver.accepted("h").into_iter().collect::<BTreeSet<_>>();
    eventually(PATIENCE * 2, async || distinct().await == ["1", "3", "4"].map(str::to_owned).into()).await;
    let late: i64 = owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap().get(0);
    assert_eq!(late, 1, "the other one is not recorded");
    replica.stop().await;
}

// Guarantee: filter.matches
#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_stream_to_kafka_loses_and_repeats_nothing_under_sigterm_and_keeps_its_order_under_kills() {
    let database = database().await;
    let owner = table(&database).await;
    let topic = unique("filtered");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    let relay = filtered(&kafka_relay("k", &topic, ""), "where = { region = [\"eu\", \"null\"] }");
    let text = toml(&database, "relay", Some(&servers), &relay);
    let replica = |name: String| Process::spawn(&text, &["run", "--replica-id", &name]);
    let mut replicas = [replica("r0".to_owned()), replica("r1".to_owned())];
    let fill = "INSERT INTO bookings (payload, region) SELECT 'p', CASE n % 4 WHEN 0 THEN 'us' WHEN 1 THEN NULL WHEN 2 THEN 'asia' \
                ELSE 'eu' END FROM generate_series($1::int, $2) AS n";
    let mut rows = 0_i32;
    for round in 0..6 {
        owner.execute(fill, &[&(rows + 1), &(rows + 4000)]).await.unwrap();
        rows += 4000;
        let delivered = ids(&servers, &topic).await.len();
        eventually(PATIENCE * 4, async || ids(&servers, &topic).await.len() > delivered).await;
        let ended = round % 2;
        replicas[ended].signal(if round < 4 { Signal::KILL } else { Signal::TERM });
        replicas[ended].wait().await;
        replicas[ended] = replica(format!("r{ended}-{round}"));
    }
    let expected: Vec<String> = (1..=rows).filter(|n| n % 4 == 1 || n % 4 == 3).map(|n| n.to_string()).collect();
    let firsts = async || {
        let mut seen = BTreeSet::new();
        ids(&servers, &topic).await.into_iter().filter(|id| seen.insert(id.clone())).collect::<Vec<_>>()
    };
    eventually(PATIENCE * 6, async || firsts().await.len() == expected.len()).await;
    assert_eq!(firsts().await, expected, "each of them, in order, and no other");
    let last = rows.to_string();
    eventually(PATIENCE * 2, async || position(&owner, "k").await.as_deref() == Some(&*last)).await;
    let (code, out, log) = outbox_relay(&text, &["verify", "k", "-o", "json"]).await;
    let kinds: BTreeSet<String> = json(&out)["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| difference["kind"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.iter().all(|kind| kind == "twice") && code.is_some_and(|code| code != 1), "{out}{log}");
}

// Guarantee: filter.matches
#[tokio::test(flavor = "multi_thread")]
async fn shards_and_read_models_get_the_rows_that_match_and_no_others() {
    let database = database().await;
    let owner = table(&database).await;
    run(&owner, "CREATE TABLE model (customer text PRIMARY KEY, rows bigint NOT NULL); GRANT SELECT, INSERT, UPDATE ON model TO relay").await;
    let model = "[[relay]]\nname = \"model\"\nshards = 3\nshard_key = \"customer\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
                 where = { paid = true }\n[relay.sink.sql]\nstatement = \"INSERT INTO public.model AS m VALUES ($1, 1) ON CONFLICT (customer) DO \
                 UPDATE SET rows = m.rows + 1\"\nparameters = [\"customer\"]\n";
    let (code, _, log) = outbox_relay(&toml(&database, "postgres", None, model), &["migrate", "up", "--indexes"]).await;
    assert_eq!(code, Some(0), "{log}");
    run(
        &owner,
        "INSERT INTO bookings (customer, paid) SELECT 'c' || n % 7, n % 3 = 0 FROM generate_series(1, 2100) AS n",
    )
    .await;
    let (code, _, log) = outbox_relay(&toml(&database, "relay", None, model), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let rows = owner.query("SELECT customer, rows FROM model ORDER BY customer", &[]).await.unwrap();
    let rows: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, (0..7).map(|n| (format!("c{n}"), 100)).collect::<Vec<_>>());
}

/// An aggregate over no rows has a row all the same, of NULL.
// Guarantee: filter.matches
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_rows_that_do_not_match_changes_no_read_model() {
    let database = database().await;
    let owner = table(&database).await;
    run(
        &owner,
        "CREATE TABLE model (letters bigint); INSERT INTO model VALUES (0); GRANT SELECT, UPDATE ON model TO relay",
    )
    .await;
    let model = "[[relay]]\nname = \"model\"\n[relay.source.stream]\ntable = \"public.bookings\"\nwhere = { paid = true }\n\
                 [relay.sink.sql]\neach = \"batch\"\nstatement = \"UPDATE public.model SET letters = letters + \
                 (SELECT sum(length(u.payload)) FROM unnest($1) AS u (payload))\"\nparameters = [\"payload\"]\n";
    let text = toml(&database, "relay", None, model);
    let letters = async || owner.query_one("SELECT letters FROM model", &[]).await.unwrap().get::<_, Option<i64>>(0);
    for (rows, expected) in [("('abc', true)", 3), ("('abc', false)", 3), ("('abc', false), ('de', true)", 5)] {
        run(&owner, &format!("INSERT INTO bookings (payload, paid) VALUES {rows}")).await;
        let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
        assert_eq!((code, letters().await), (Some(0), Some(expected)), "{rows}: {log}");
    }
    assert_eq!(position(&owner, "model").await.as_deref(), Some("4"), "the position passes the others");
}
