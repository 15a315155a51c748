//! Producers are lent before others are made.

use super::*;
use crate::sink::kafka::ClusterConfig;

const LIMIT: usize = 1_000_000;

/// Nobody listens there: producers are made, and never connected.
fn cluster() -> Arc<Cluster> {
    let bootstrap_servers = "127.0.0.1:1".to_owned();
    Arc::new(Cluster::new(ClusterConfig { bootstrap_servers, ..ClusterConfig::default() }))
}

fn waiting(cluster: &Arc<Cluster>, limit: usize) -> tokio::task::JoinHandle<(Lent, Duration)> {
    let cluster = Arc::clone(cluster);
    tokio::spawn(async move {
        let begun = Instant::now();
        (cluster.lend(limit, None).await.expect("a producer"), begun.elapsed())
    })
}

fn out(cluster: &Cluster, limit: usize) -> usize {
    cluster.shelves().get(&ProducerKind::prompt(limit)).map_or(0, |shelf| shelf.out)
}

#[tokio::test]
async fn a_producer_that_comes_back_soon_is_lent_again_and_no_other_is_made() {
    let cluster = cluster();
    let first = cluster.lend(LIMIT, None).await.expect("a producer");
    let producer = Arc::clone(&first.producer);
    let (second, third) = (waiting(&cluster, LIMIT), waiting(&cluster, LIMIT));
    tokio::task::yield_now().await;
    assert!(!second.is_finished() && !third.is_finished(), "they wait");
    cluster.take_back(first);
    let (second, _) = second.await.expect("no panic");
    assert!(Arc::ptr_eq(&second.producer, &producer));
    cluster.take_back(second);
    let (third, waited) = third.await.expect("no panic");
    assert!(Arc::ptr_eq(&third.producer, &producer) || waited >= RETURN, "each return is heard by one who waits");
    drop(third);
    assert_eq!(out(&cluster, LIMIT), 0);
}

#[tokio::test]
async fn another_producer_is_made_when_those_on_loan_do_not_come_back_soon_or_are_no_more() {
    let cluster = cluster();
    let first = cluster.lend(LIMIT, None).await.expect("a producer");
    let (second, waited) = waiting(&cluster, LIMIT).await.expect("no panic");
    assert!(!Arc::ptr_eq(&second.producer, &first.producer) && waited >= RETURN, "{waited:?}");
    assert_eq!(out(&cluster, LIMIT), 2);
    let third = waiting(&cluster, LIMIT);
    tokio::task::yield_now().await;
    cluster.destroy(first);
    cluster.destroy(second);
    let (third, _) = third.await.expect("no panic");
    assert_eq!(out(&cluster, LIMIT), 1, "theirs have ended");
    cluster.destroy(third);
}

#[tokio::test]
async fn nobody_waits_for_a_producer_of_another_kind() {
    let cluster = cluster();
    let small = cluster.lend(LIMIT, None).await.expect("a producer");
    let large = cluster.lend(2 * LIMIT, None);
    let large = tokio::time::timeout(Duration::ZERO, large).await.expect("at once").expect("a producer");
    assert_eq!((out(&cluster, LIMIT), out(&cluster, 2 * LIMIT)), (1, 1));
    drop((small, large));
}
