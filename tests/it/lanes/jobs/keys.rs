//! Due rows to Kafka, whose lane is the record's key, and what `check` says of lanes of jobs.

use std::collections::BTreeMap;

use super::{BOTH, Source, Stage};
use crate::support::outside::{finding, json};
use crate::support::relays::parse;
use crate::support::{Replica, broker, outbox_relay, records, toml, unique};

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn due_rows_of_one_key_come_to_kafka_in_order() {
    let (stage, topic) = (Stage::new(Source::Due).await, unique("lanes"));
    broker().await.create_topic(&topic, 3, &[]).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    stage.add(200, 20).await;
    let relay = format!(
        "[[relay]]\nname = \"h\"\n[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent\"\n\
         [relay.turn]\nin_flight = 30\n[relay.sink.kafka]\ntopic = \"{topic}\"\nkey = \"lane\"\npayload = {{ row = true }}\n"
    );
    let text = toml(&stage.database, "relay", Some(&servers), &relay);
    let replicas = ["r1", "r2"].map(|name| Replica::start(&parse(&text), name));
    stage.all_sent().await;
    for replica in replicas {
        replica.stop().await;
    }
    let mut of_key: BTreeMap<Option<String>, Vec<i64>> = BTreeMap::new();
    for record in records(&servers, &topic).await {
        of_key.entry(record.key.clone()).or_default().push(record.id().parse().unwrap());
    }
    assert_eq!(of_key.values().map(Vec::len).sum::<usize>(), 200, "each once");
    assert!(of_key.len() == 20 && of_key.values().all(|ids| ids.is_sorted()), "{of_key:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_that_in_flight_of_jobs_is_of_each_replica() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        let (_, out, log) = outbox_relay(&stage.text(20, ["", "", ""]), &["check", "-o", "json"]).await;
        let document = json(&out);
        let found = finding(&document, "messages_in_flight").unwrap_or_else(|| panic!("{source:?}: {out}{log}"));
        let message = found["message"].as_str().unwrap();
        assert!(message.contains("from each replica: three replicas send up to 60"), "{source:?}: {message}");
    }
}
