//! What the demo says of `outbox-relay verify`.

use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use super::*;

// Guarantee: delivery.demo-verify
#[tokio::test]
async fn what_verify_finds_fails_the_demo() {
    let broker = RealBroker::start().await.unwrap();
    let servers = broker.bootstrap_servers();
    let (child, dir) = demo("6", &["--kafka", &servers, "--replicas", "1"]);
    // The topic of a demo whose rows come already.
    let topic = async || topics(&servers).await.into_iter().find(|name| name.starts_with("outbox-relay-demo"));
    eventually(PATIENCE, async || match topic().await {
        Some(topic) => !is_empty(&servers, &topic).await,
        None => false,
    })
    .await;
    let topic = topic().await.unwrap();
    let at = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let headers = [("relay", "booking_events"), ("id", "999999999"), ("created_at", at.as_str())];
    send(&servers, &topic, &headers).await;

    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("\nverify  booking_events: different: 1 not_in_table"), "{stdout}");
    let verdict: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((verdict["verdict"].as_str(), verdict["verify"]["exit_code"].as_i64()), (Some("fail"), Some(3)));
    // Rows that come after it in its partition, and were held back, are out of order by what it says.
    assert_eq!(verdict["verify"]["counts"]["not_in_table"], 1, "{stdout}");
    assert_eq!(verdict["sinks"]["kafka"]["phantom"], 1, "{stdout}");
    assert_eq!(left_in(dir.path()), [""; 0]);
}

async fn is_empty(servers: &str, topic: &str) -> bool {
    let consumer: BaseConsumer = ClientConfig::new().set("bootstrap.servers", servers).create().unwrap();
    let topic = topic.to_owned();
    let looked = tokio::task::spawn_blocking(move || {
        let end =
            |partition| consumer.fetch_watermarks(&topic, partition, Duration::from_secs(10)).map_or(0, |(_, end)| end);
        (0..8).map(end).sum::<i64>() == 0
    });
    looked.await.unwrap()
}

/// What another program wrote under the relay's name.
async fn send(servers: &str, topic: &str, headers: &[(&str, &str)]) {
    let producer: FutureProducer = ClientConfig::new().set("bootstrap.servers", servers).create().unwrap();
    let add = |all: OwnedHeaders, (key, value): &(&str, &str)| all.insert(Header { key, value: Some(*value) });
    let headers = headers.iter().fold(OwnedHeaders::new(), add);
    let record = FutureRecord::<(), str>::to(topic).payload("not committed").headers(headers);
    producer.send(record, PATIENCE).await.unwrap();
}
