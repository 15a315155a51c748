use std::collections::BTreeMap;

use rdkafka::producer::BaseProducer;

use super::*;

fn producer(limit: usize, queue: Option<&str>) -> ClientConfig {
    let properties: BTreeMap<_, _> = queue.map(|kib| (QUEUE.to_owned(), kib.to_owned())).into_iter().collect();
    Cluster::new(ClusterConfig { bootstrap_servers: "127.0.0.1:1".to_owned(), properties, ..ClusterConfig::default() })
        .producer_config(ProducerKind::prompt(limit))
}

// Guarantee: delivery.large-rows
#[test]
fn a_producers_queue_has_room_for_two_records_of_the_topics_limit_whatever_it_is() {
    let kib = |limit, queue| {
        let kib = producer(limit, queue).get(QUEUE).and_then(|kib| kib.parse::<usize>().ok());
        kib.expect("a number")
    };
    assert_eq!(kib(1_048_588, None), 8_192);
    assert_eq!((kib(1_048_588, Some("65536")), kib(1_048_588, Some("4096"))), (65_536, 4_096), "the operator's");
    for (limit, queue) in [(64 << 20, None), (100_000_000, None), (1_000_000_000, None), (64 << 20, Some("1"))] {
        assert!(kib(limit, queue) * 1024 >= 2 * limit, "{limit} bytes");
    }
}

#[test]
fn the_operators_shortest_pause_before_a_reconnection_is_never_above_the_longest() {
    for (shortest, longest) in [("5000", "5000"), ("100", "1000")] {
        let properties = BTreeMap::from([("reconnect.backoff.ms".to_owned(), shortest.to_owned())]);
        let bootstrap_servers = "127.0.0.1:1".to_owned();
        let cluster = Cluster::new(ClusterConfig { bootstrap_servers, properties, ..ClusterConfig::default() });
        let config = cluster.producer_config(ProducerKind::prompt(1_048_588));
        assert_eq!(config.get("reconnect.backoff.max.ms"), Some(longest));
        let made = config.create_with_context::<_, BaseProducer<Context>>(Context::default());
        assert!(made.is_ok(), "{:?}", made.err());
    }
}

// Guarantee: delivery.large-rows
#[test]
fn every_limit_that_a_topic_can_have_makes_a_producer() {
    for limit in [0, 1, 999, 1_000, 1_048_588, 1_000_000_000, 2_147_483_647] {
        let made = producer(limit, None).create_with_context::<_, BaseProducer<Context>>(Context::default());
        assert!(made.is_ok(), "{limit} bytes: {:?}", made.err());
    }
}

// Guarantee: secrets.kafka-files
#[test]
fn file_that_keeps_a_client_from_being_made_is_named_with_its_property() {
    let folder = tempfile::tempdir().expect("made");
    let (missing, garbled) = (folder.path().join("none.pem"), folder.path().join("garbled.pem"));
    std::fs::write(&garbled, "no PEM").expect("written");
    let not_made = |key: &str, path: &std::path::Path| {
        let properties = [("security.protocol", "ssl".to_owned()), (key, path.display().to_string())];
        let properties = properties.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let bootstrap_servers = "127.0.0.1:1".to_owned();
        let cluster = Cluster::new(ClusterConfig { bootstrap_servers, properties, ..ClusterConfig::default() });
        let config = cluster.producer_config(ProducerKind::prompt(1_048_588));
        let made = config.create_with_context::<_, BaseProducer<Context>>(Context::default());
        cluster.not_made(&made.err().expect("no client"))
    };
    for key in ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location"] {
        let failure = not_made(key, &missing);
        let named = format!("[kafka.properties] {key}: {} cannot be read: No such file", missing.display());
        assert!(failure.message.starts_with(&named), "{}", failure.message);
        assert!(failure.hint.contains("readable for the relay's user"), "{}", failure.hint);
        assert_eq!((failure.code.as_str(), failure.ambiguous), ("kafka_client", false));
        let failure = not_made(key, &garbled);
        let named = format!("[kafka.properties] {key} is {}", garbled.display());
        assert!(failure.message.ends_with(&named), "{}", failure.message);
    }
}
