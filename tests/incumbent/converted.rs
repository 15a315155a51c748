//! What `convert debezium` makes of a connector's configuration publishes what Debezium publishes: the same rows through both, at the
//! same time, into the same topics.

use std::collections::BTreeMap;

use outbox_testkit::postgres::password;
use outbox_testkit::startup::private;
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use serde_json::{Value, json};

use crate::connect::Connect;
use crate::support::records::each;
use crate::support::{Database, PATIENCE, Process, broker, eventually, outbox_relay, unique};
use crate::{connector, logical};

pub const TABLE: &str = "CREATE TABLE public.outboxevent (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), \
    aggregatetype text NOT NULL, aggregateid text, type text NOT NULL, payload jsonb, \
    tenant text, attempt int NOT NULL DEFAULT 7, urgent boolean NOT NULL DEFAULT true, \
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
    CREATE UNIQUE INDEX ON public.outboxevent (created_at, id)";
const PLACED: &str = "transforms.outbox.table.fields.additional.placement=type:header:eventType,tenant:header,attempt:header,urgent:header";

/// The configuration as `convert` prints it, with what this machine has in place of what a file of secrets and a fixed port are.
async fn converted(connector: &str, dir: &std::path::Path) -> String {
    let file = dir.join("connector.properties");
    private(&file, connector).unwrap();
    let (code, toml, notes) = outbox_relay("", &["convert", "debezium", &file.display().to_string()]).await;
    assert_eq!(code, Some(0), "{notes}");
    let secret = dir.join("password");
    private(&secret, &password("postgres")).unwrap();
    toml.replace("/run/secrets/postgres-password", &secret.display().to_string())
        .replace("127.0.0.1:9464", "127.0.0.1:0")
}

/// What both must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    topic: String,
    partition: i32,
    key: Option<String>,
    payload: Option<String>,
    headers: BTreeMap<String, Option<String>>,
}

/// A record of the relay or of Debezium, its id, and its headers without those that each adds on its own.
fn seen(message: &BorrowedMessage<'_>) -> (bool, String, Seen) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers = message.headers().unwrap().iter().map(|header| (header.key.to_owned(), header.value.map(text)));
    let mut headers: BTreeMap<String, Option<String>> = headers.collect();
    let id = headers.remove("id").unwrap().unwrap();
    let ours = headers.remove("relay").is_some() && headers.remove("created_at").is_some();
    headers.retain(|name, _| ours || !name.starts_with("__debezium.context."));
    let (topic, partition) = (message.topic().to_owned(), message.partition());
    let (key, payload) = (message.key().map(text), message.payload().map(text));
    (ours, id, Seen { topic, partition, key, payload, headers })
}

/// By id, with the order of the records of a partition.
pub async fn published(topics: &[String], relay: bool) -> (BTreeMap<String, Seen>, Vec<Vec<String>>) {
    let (mut all, mut order) = (BTreeMap::new(), Vec::new());
    for topic in topics {
        let records = each(&broker().await.bootstrap_servers(), topic, seen).await;
        for (_, id, seen) in records.into_iter().filter(|(ours, ..)| *ours == relay) {
            let partition = usize::try_from(seen.partition).unwrap();
            order.resize(order.len().max(partition + 1), Vec::new());
            order[partition].push(id.clone());
            assert_eq!(all.insert(id, seen), None, "twice");
        }
    }
    (all, order)
}

pub const ROWS: &str = r#"
    INSERT INTO public.outboxevent (aggregatetype, aggregateid, type, payload, tenant, attempt, urgent)
    SELECT CASE WHEN n % 3 = 0 THEN 'payment' ELSE 'order' END, 'Nr. ' || n % 17 || ' ä€😀', 'placed',
        jsonb_build_object('n', n, 'text', 'ä€😀 "quoted" \ back', 'price', 1.10, 'list', '[1, 2]'::jsonb),
        CASE WHEN n % 2 = 0 THEN 'acme' END, n, n % 5 = 0
    FROM generate_series(1, 200) AS n;
    INSERT INTO public.outboxevent (aggregatetype, aggregateid, type, payload)
    VALUES ('order', 'gone', 'deleted', NULL), ('order', '', 'empty', '{}')"#;

/// Rows through Debezium, configured by `more`, and through the relay with what `convert` makes of it; the records of
/// Debezium, then those of the relay.
async fn both(more: &str, rows: &str) -> [BTreeMap<String, Seen>; 2] {
    let database = logical().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(TABLE).await.unwrap();
    let prefix = unique("converted");
    let topics = ["order", "payment"].map(|kind| format!("{prefix}.{kind}"));
    for topic in &topics {
        broker().await.create_topic(topic, 5, &[]).await.unwrap();
    }
    let routed = format!("transforms.outbox.route.topic.replacement={prefix}.${{routedByValue}}\n{PLACED}\n{more}\n");
    let connector = connector(&database, &routed).await;
    let dir = tempfile::tempdir().unwrap();
    let toml = converted(&connector, dir.path()).await;
    let _debezium = Connect::start(&database, &connector).await;
    let mut relay = Process::spawn(&toml, &["run"]);
    let begun = "SELECT count(*) = 1 FROM outbox.cursor WHERE position_created_at IS NOT NULL";
    eventually(PATIENCE * 2, async || owner.query_one(begun, &[]).await.unwrap().get(0)).await;
    owner.batch_execute(rows).await.unwrap();
    let count: i64 = owner.query_one("SELECT count(*) FROM public.outboxevent", &[]).await.unwrap().get(0);
    for relay in [true, false] {
        let all = async || published(&topics, relay).await.0.len() == usize::try_from(count).unwrap();
        eventually(PATIENCE * 6, all).await;
    }
    relay.signal(rustix::process::Signal::TERM);
    assert_eq!(relay.wait().await, Some(0), "{}", relay.log());
    let ((theirs, their_order), (ours, our_order)) = (published(&topics, false).await, published(&topics, true).await);
    assert_eq!(their_order, our_order, "one transaction: its order is that of created_at");
    assert_eq!(theirs.len(), ours.len());
    [theirs, ours]
}

// Guarantee: verify.converted
#[tokio::test(flavor = "multi_thread")]
async fn converted_configuration_publishes_the_records_that_debezium_publishes() {
    let more = "key.converter=org.apache.kafka.connect.storage.StringConverter\n\
                value.converter=org.apache.kafka.connect.storage.StringConverter";
    let [theirs, ours] = both(more, ROWS).await;
    assert_eq!(theirs.len(), 202);
    for (id, seen) in &theirs {
        assert_eq!(Some(seen), ours.get(id), "left: Debezium's, right: the relay's");
    }
}

// Guarantee: verify.converted
#[tokio::test(flavor = "multi_thread")]
async fn payload_that_debezium_expands_is_the_same_json_without_nulls_and_mixed_lists() {
    let more = "key.converter=org.apache.kafka.connect.storage.StringConverter\n\
                transforms.outbox.table.expand.json.payload=true\n\
                value.converter=org.apache.kafka.connect.json.JsonConverter\n\
                value.converter.schemas.enable=false";
    let odd = "; INSERT INTO public.outboxevent (aggregatetype, aggregateid, type, payload) VALUES \
               ('order', 'null', 'a', '{\"none\": null, \"b\": 1}'), ('order', 'mixed', 'b', '{\"list\": [1, \"b\"]}'), \
               ('order', 'big', 'c', '{\"big\": 12345678901234567890.5}'), ('order', 'text', 'd', '\"text\"')";
    let [theirs, ours] = both(more, &format!("{ROWS}{odd}")).await;
    for (id, seen) in &theirs {
        let (theirs, ours) = (seen, &ours[id]);
        assert_eq!(Seen { payload: None, ..theirs.clone() }, Seen { payload: None, ..ours.clone() });
        let json = |seen: &Seen| seen.payload.as_ref().map(|text| serde_json::from_str::<Value>(text).unwrap());
        let expected = match ours.key.as_deref() {
            Some("null") => Some(json!({"b": 1})),
            Some("mixed" | "text") => ours.payload.clone().map(Value::String),
            Some("gone") => Some(Value::Null),
            _ => json(ours),
        };
        assert_eq!(json(theirs), expected, "left: Debezium's, right: the relay's");
    }
}
