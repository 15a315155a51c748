//! `format = "cloudevents"`: the official SDK for Java reads from a real broker what the rows say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::consumer::{java, kit};
use crate::kafka_sink::{arrived, configured};
use crate::support::outside::halted;
use crate::support::{CLOCK, PATIENCE, Replica, bookings, broker, database, outbox_relay, toml, unique};

/// A relay named by its topic, with these lines of its sink, and below `[relay.sink.kafka.cloudevents]`.
fn relay(topic: &str, sink: &str, events: &str) -> String {
    format!(
        "[[relay]]\nname = \"{topic}\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.kafka]\n\
         topic = \"{topic}\"\nkey = \"customer\"\nformat = \"cloudevents\"\n{sink}\n[relay.sink.kafka.cloudevents]\n{events}\n"
    )
}

async fn topics<const N: usize>(names: [&str; N]) -> [String; N] {
    let topics = names.map(unique);
    for topic in &topics {
        broker().await.create_topic(topic, 1, &[]).await.unwrap();
    }
    topics
}

/// What the SDK reads, by topic and id. All topics at once: Java compiles the program each time.
async fn read(topics: &[String]) -> BTreeMap<String, BTreeMap<String, Value>> {
    let (kit, jars) = kit();
    let mut java = java();
    java.args([
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    ]);
    java.arg("-cp").arg(format!("{}/*:{}/*", jars.display(), kit.join("java").display()));
    java.args(["tests/consumer/Events.java", &broker().await.bootstrap_servers()]).args(topics);
    let run = tokio::process::Command::from(java).kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE * 6, run).await.expect("it ends").unwrap();
    let (said, failed) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{failed}");
    let mut events = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (topic, event) in said.lines().map(|line| line.split_once('\t').expect("a topic and an event")) {
        let event: Value = serde_json::from_str(event).unwrap();
        events.entry(topic.to_owned()).or_default().insert(event["id"].as_str().unwrap().to_owned(), event);
    }
    events
}

/// The same event without its data.
fn attributes(event: &Value) -> Value {
    let mut event = event.clone();
    event.as_object_mut().unwrap().retain(|name, _| !name.starts_with("data") || name == "datacontenttype");
    event
}

const COLUMNS: &str = "ALTER TABLE bookings ADD event text, ADD tenant text, ADD doc jsonb, ADD bin bytea; \
    INSERT INTO bookings (id, customer, payload, event, tenant, doc, bin, created_at) OVERRIDING SYSTEM VALUE VALUES \
    (1, 'müller & co', E'tab\tü€😀', 'org.example.booking.created', 'acme ä', '{\"n\": 9007199254740993, \"a\": [1.10, null]}', '\\x00ff0a', \
     '2026-11-21 08:00:00.123456+00'), \
    (2, 'c', NULL, 'org.example.booking.cancelled', NULL, NULL, NULL, '2026-11-21 09:00:00+00')";

const EVENTS: &str = "type = \"{{ event }}\"\nsource = \"https://example.org/bookings\"\nsubject = \"{{ customer }}\"\n\
    extensions = { tenant = \"{{ tenant | default('') }}\" }";

// Guarantee: delivery.cloudevents
#[tokio::test(flavor = "multi_thread")]
async fn official_sdk_reads_the_same_event_from_binary_and_structured_records() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(COLUMNS).await.unwrap();
    let topics =
        topics(["ce-row", "ce-row-s", "ce-doc", "ce-doc-s", "ce-text", "ce-text-s", "ce-bin", "ce-bin-s"]).await;
    let [row, row_s, doc, doc_s, text, text_s, bin, bin_s] = &topics;
    let structured = "mode = \"structured\"";
    let of = |column: &str, of_type: &str| {
        (format!("payload = {{ column = \"{column}\" }}"), format!("datacontenttype = \"{of_type}\""))
    };
    let kinds = [
        (row, row_s, (String::new(), String::new())),
        (doc, doc_s, of("doc", "application/json")),
        (text, text_s, of("payload", "text/plain; charset=utf-8")),
        (bin, bin_s, of("bin", "application/octet-stream")),
    ];
    let mut relays = String::new();
    for (binary, object, (payload, of_type)) in &kinds {
        relays.push_str(&relay(binary, payload, &format!("{EVENTS}\n{of_type}")));
        relays.push_str(&relay(object, payload, &format!("{EVENTS}\n{of_type}\n{structured}")));
    }
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    for topic in &topics {
        arrived(topic, 2).await;
    }
    replica.stop().await;
    let events = read(&topics).await;
    for (binary, object, (_, of_type)) in &kinds {
        let (binary, object) = (&events[*binary], &events[*object]);
        let of_type = of_type.split('"').nth(1).unwrap_or("application/json");
        assert_eq!(
            attributes(&binary["1"]),
            json!({
                "specversion": "1.0", "id": "1", "source": "https://example.org/bookings", "type": "org.example.booking.created",
                "subject": "müller & co", "time": "2026-11-21T08:00:00.123456Z", "tenant": "acme ä", "datacontenttype": of_type
            })
        );
        assert_eq!(binary["2"].get("tenant"), None);
        assert_eq!(binary, object, "{of_type}");
    }
    assert_eq!(events[doc_s]["1"]["data"]["n"], json!(9_007_199_254_740_993_u64));
    assert_eq!(events[doc]["2"].get("data"), None);
    assert_eq!(events[row]["1"]["data"]["payload"], "tab\tü€😀");
    assert_eq!(events[bin_s]["1"]["data_base64"], "AP8K");
    // A text is the same bytes; whether the SDK's own JSON has it as text or base64 is the SDK's matter.
    assert_eq!(arrived(text, 2).await[0].text(), "tab\tü€😀");
    let value: Value = serde_json::from_str(&arrived(text_s, 2).await[0].text()).unwrap();
    assert_eq!(value["data"], "tab\tü€😀");
}

// Guarantee: delivery.cloudevents
#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_relay_stay_and_the_key_is_the_configured_one() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (customer) VALUES ('c')").await.unwrap();
    let both = topics(["ce-bare", "ce-bare-s"]).await;
    let [binary, object] = &both;
    let bare = "type = \"created\"";
    let relays = [relay(binary, "", bare), relay(object, "", &format!("{bare}\nmode = \"structured\""))].concat();
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    let mut records = Vec::new();
    for topic in &both {
        records.push((topic, arrived(topic, 1).await.remove(0)));
    }
    let events = read(&both).await;
    for (topic, record) in records {
        assert_eq!(
            (record.id(), record.key.as_deref(), record.header("relay")),
            ("1", Some("c"), Some(topic.as_str()))
        );
        let event = &events[topic]["1"];
        assert_eq!(event["source"], format!("/outbox-relay/{topic}"));
        let created_at = record.header("created_at").unwrap();
        let instant = |text: &str| outbox_relay::position::Timestamp::parse_rfc3339(text).unwrap();
        assert_eq!(instant(event["time"].as_str().unwrap()), instant(created_at));
        assert_eq!(record.header("ce_id"), (topic == binary).then_some("1"));
    }
    replica.stop().await;
}

// Guarantee: delivery.cloudevents
#[tokio::test(flavor = "multi_thread")]
async fn row_without_a_type_halts_its_relay_with_a_fix_and_follows_when_it_has_one() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute("ALTER TABLE bookings ADD event text; INSERT INTO bookings (event) VALUES ('a'), (NULL), ('c')")
        .await
        .unwrap();
    let [topic] = topics(["ce-null"]).await;
    let relays = relay(&topic, "", "type = \"{{ event }}\"");
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    let (message_id, error) = halted(&owner, &topic).await;
    assert_eq!(
        (message_id.as_deref(), &error["class"], &error["code"]),
        (Some("2"), &"poison".into(), &"invalid_cloudevent".into())
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("attribute type") && message.contains("NULL in this row: event"), "{error}");
    owner.batch_execute("UPDATE bookings SET event = 'b' WHERE id = 2").await.unwrap();
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relays);
    assert_eq!(outbox_relay(&text, &["cursor", "resume", &topic]).await.0, Some(0));
    let types: Vec<_> =
        arrived(&topic, 3).await.iter().map(|record| record.header("ce_type").unwrap().to_owned()).collect();
    assert_eq!(types, ["a", "b", "c"]);
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_the_key_whose_column_is_not_there() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let [topic] = topics(["ce-check"]).await;
    let relays = relay(&topic, "", "type = \"created\"\nextensions = { tenant = \"{{ tenan }}\" }");
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relays);
    let (_, said, log) = outbox_relay(&text, &["check"]).await;
    let said = format!("{said}{log}");
    assert!(said.contains("relay.sink.kafka.cloudevents.extensions.tenant") && said.contains("tenan"), "{said}");
}
