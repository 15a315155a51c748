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
