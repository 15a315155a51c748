//! Any identifier is safe and keeps its case, from the check to the record.

use tokio_postgres::Client;

use crate::support::{
    Database, PATIENCE, Process, Replica, broker, config, database, eventually, outbox_relay, records, toml, unique,
};

/// As TOML: schema `we"ird`, table `user`.
const STREAM: &str = "table = '\"we\"\"ird\".user'\nid = \"id;--\"\ncreated_at = \"Created At\"\n";

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

async fn hostile(database: &Database) -> Client {
    let owner = database.connect("postgres").await;
    run(
        &owner,
        "CREATE SCHEMA \"we\"\"ird\"; CREATE TABLE \"we\"\"ird\".\"user\" (\
         \"id;--\" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         \"Created At\" timestamptz NOT NULL DEFAULT clock_timestamp(), \
         \"Select\" text NOT NULL DEFAULT 'k', \"pay\"\"load'\" text, \"select\" text DEFAULT 'another'); \
         CREATE INDEX \"in;dex\" ON \"we\"\"ird\".\"user\" (\"Created At\", \"id;--\")",
    )
    .await;
    for role in ["relay", "relay_stats"] {
        let grants = outbox_relay::migrate::relay_grants(role, &[("we\"ird", "user")]);
        outbox_relay::migrate::grant(&owner, &grants).await.unwrap();
    }
    owner
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_identifiers_reach_kafka_in_order() {
    let (database, broker) = (database().await, broker().await);
    let owner = hostile(&database).await;
    let topic = unique("names");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let relay = format!(
        "[[relay]]\nname = \"names\"\n[relay.source.stream]\n{STREAM}[relay.sink.kafka]\ntopic = \"{topic}\"\n\
         key = \"Select\"\npayload = {{ column = \"pay\\\"load'\" }}\n"
    );
    let (code, out, log) =
        outbox_relay(&toml(&database, "relay", Some(&servers), &relay), &["check", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out} {log}");
    // The indexes are recognised by the columns' real names.
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    for finding in report["findings"].as_array().unwrap() {
        assert!(finding["code"] != "index_missing" && finding["code"] != "not_unique", "{finding}");
    }
    let insert =
        "INSERT INTO \"we\"\"ird\".\"user\" (\"pay\"\"load'\") SELECT 'p' || n FROM generate_series(1, 500) AS n";
    run(&owner, insert).await;
    let config = config(&database, "relay", Some(&servers), &relay);
    let replica = Replica::start(&config, "r1");
    let come = || async { records(&servers, &topic).await.len() >= 500 };
    eventually(PATIENCE * 2, come).await;
    replica.stop().await;
    let records = records(&servers, &topic).await;
    let ids: Vec<String> = records.iter().map(|record| record.id().to_owned()).collect();
    assert_eq!(ids, (1..=500).map(|id: i32| id.to_string()).collect::<Vec<_>>());
    assert_eq!(records[499].text(), "p500");
    assert_eq!(records[499].key.as_deref(), Some("k"));
}

/// The whole lines that a relay has printed.
fn printed(process: &Process) -> Vec<serde_json::Value> {
    let out = process.out();
    let whole = out.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn hostile_identifiers_are_printed_as_they_are_and_held_back_by_their_writers() {
    for role in ["relay", "relay_stats"] {
        let database = database().await;
        let owner = hostile(&database).await;
        let relay = format!("[[relay]]\nname = \"names\"\n[relay.source.stream]\n{STREAM}[relay.sink.stdout]\n");
        let process = Process::spawn(&toml(&database, role, None, &relay), &["run"]);
        let insert = "INSERT INTO \"we\"\"ird\".\"user\" DEFAULT VALUES";
        run(&owner, insert).await;
        eventually(PATIENCE, || async { printed(&process).len() == 1 }).await;
        let writer = database.connect("postgres").await;
        run(&writer, &format!("BEGIN; {insert}")).await;
        run(&owner, insert).await;
        run(&writer, "COMMIT").await;
        eventually(PATIENCE, || async { printed(&process).len() == 3 }).await;
        let lines = printed(&process);
        let ids: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["1", "2", "3"]);
        assert_eq!(lines[0]["row"]["Select"], "k");
        assert_eq!(lines[0]["row"]["select"], "another");
        assert!(lines[0]["row"]["Created At"].is_string());
    }
}
