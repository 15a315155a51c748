//! What the search for an offending row costs, with one and with five requests in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::{all, limit};
use crate::support::relays::parse;
use crate::support::{
    CLOCK, PATIENCE, Record, Replica, bookings, broker, database, eventually, kafka_relay, toml, unique,
};

const ROWS: usize = 6_000;
/// Refused, in the middle of a batch each.
const CULPRITS: [usize; 2] = [2_345, 4_321];
const PARTITIONS: i32 = 4;

/// First deliveries of each partition in order, all rows but the culprits; gives how many came again.
fn judged(records: &[Record]) -> usize {
    let mut partitions: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for record in records {
        let id: usize = record.id().parse().unwrap();
        if seen.insert(id) {
            partitions.entry(record.partition).or_default().push(id);
        }
    }
    assert_eq!(partitions.len(), usize::try_from(PARTITIONS).unwrap());
    for (partition, ids) in &partitions {
        assert!(ids.is_sorted(), "partition {partition}");
    }
    let expected: BTreeSet<usize> = (1..=ROWS).filter(|id| !CULPRITS.contains(id)).collect();
    assert_eq!(seen, expected, "all but the culprits");
    records.len() - seen.len()
}

async fn searched(in_flight: usize) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("search");
    broker().await.create_topic(&topic, PARTITIONS, &[]).await.unwrap();
    let relays = kafka_relay("r", &topic, "on_poison = \"dead_letter\"");
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relays);
    let properties = format!("\n[kafka.properties]\n\"max.in.flight.requests.per.connection\" = \"{in_flight}\"\n");
    let replica = Replica::start(&parse(&format!("{text}{properties}")), "r1");
    // The relay believes the limit that it saw at its start, so that it is the broker that refuses.
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('first')").await.unwrap();
    eventually(PATIENCE * 2, || async { all(&topic).await.len() == 1 }).await;
    limit(&topic, "20000").await;
    let culprits = CULPRITS.map(|id| id.to_string()).join(", ");
    let fill = format!(
        "INSERT INTO bookings (customer, payload) SELECT 'customer-' || n % 50, \
         repeat('x', CASE WHEN n IN ({culprits}) THEN 30000 ELSE 50 END) FROM generate_series(2, {ROWS}) AS n"
    );
    let begun = Instant::now();
    owner.batch_execute(&fill).await.unwrap();
    let position = "SELECT position_id FROM outbox.cursor WHERE name = 'r'";
    let last = || async { owner.query_one(position, &[]).await.unwrap().get::<_, String>(0) == ROWS.to_string() };
    eventually(PATIENCE * 6, last).await;
    let took = begun.elapsed();
    replica.stop().await;
    let letters = owner.query("SELECT message_id::bigint FROM outbox.dead_letter ORDER BY 1", &[]).await.unwrap();
    let letters: Vec<i64> = letters.iter().map(|row| row.get(0)).collect();
    assert_eq!(letters, CULPRITS.map(|id| i64::try_from(id).unwrap()), "they and no other");
    let records = all(&topic).await;
    let again = judged(&records);
    println!("{in_flight} in flight: {} delivered, {again} again, {took:?}", records.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_culprits_are_put_aside_and_each_partition_keeps_its_order_with_one_request_in_flight() {
    searched(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_culprits_are_put_aside_and_each_partition_keeps_its_order_with_five_requests_in_flight() {
    searched(5).await;
}
