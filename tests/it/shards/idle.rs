//! A shard that no key hashes to.

use outbox_testkit::bookings::Table;

use super::Stage;
use crate::support::{PATIENCE, eventually};

// Guarantee: shards.empty
#[tokio::test(flavor = "multi_thread")]
async fn shards_without_rows_follow_the_others_so_that_rows_can_be_deleted() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[4]).await;
    let replica = stage.replica("r1", 4);
    let one_key = "INSERT INTO bookings (customer, region, phone, payload) VALUES ('one', 'r', 'p', 'x')";
    stage.owner.batch_execute(one_key).await.unwrap();
    eventually(PATIENCE, async || stage.consumer.count() == 1).await;
    let read = "SELECT count(*) FROM outbox.cursor WHERE position_created_at IS NOT NULL";
    eventually(PATIENCE * 2, async || stage.owner.query_one(read, &[]).await.unwrap().get::<_, i64>(0) == 4).await;
    let free = "SELECT count(*) FROM outbox.safe_to_delete WHERE name = 'bookings' AND created_at > '-infinity'";
    assert_eq!(stage.owner.query_one(free, &[]).await.unwrap().get::<_, i64>(0), 1);
    // Rows of every shard still come, those that follow included.
    stage
        .owner
        .batch_execute(
            "INSERT INTO bookings (customer, region, phone, payload) SELECT 'c' || n, 'r', 'p', 'x' FROM generate_series(1, 50) n",
        )
        .await
        .unwrap();
    eventually(PATIENCE, async || stage.consumer.count() == 51).await;
    stage.consumer.catch_up(PATIENCE).await.unwrap();
    assert_eq!(stage.consumer.count(), 51);
    drop(replica);
}

// Guarantee: shards.new-partition
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_followed_into_a_new_partition_reads_its_own_rows_there() {
    let stage = Stage::new(Table::PLAIN).await;
    stage
        .owner
        .batch_execute(
            "DROP TABLE bookings; \
             CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY, \
             created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL, payload text, \
             PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at); \
             CREATE TABLE bookings_old PARTITION OF bookings FOR VALUES FROM (MINVALUE) TO ('2026-01-01'); \
             GRANT SELECT ON bookings TO relay; \
             INSERT INTO bookings (created_at, customer) SELECT '2025-12-31', 'c' || n FROM generate_series(1, 50) n",
        )
        .await
        .unwrap();
    stage.indexes(&[4]).await;
    let replica = stage.replica("r1", 4);
    eventually(PATIENCE * 2, async || stage.consumer.count() == 50).await;
    // Every shard has read; now there is a partition that none has known, with a row of one of them.
    stage
        .owner
        .batch_execute(
            "CREATE TABLE bookings_new PARTITION OF bookings FOR VALUES FROM ('2026-01-01') TO (MAXVALUE); \
             INSERT INTO bookings (customer) VALUES ('one')",
        )
        .await
        .unwrap();
    eventually(PATIENCE * 2, async || stage.consumer.count() == 51).await;
    let there = "SELECT count(*) FROM outbox.cursor WHERE position_created_at >= '2026-01-01'";
    eventually(PATIENCE * 3, async || stage.owner.query_one(there, &[]).await.unwrap().get::<_, i64>(0) == 4).await;
    let rows = "INSERT INTO bookings (customer) SELECT 'c' || n FROM generate_series(1, 50) n";
    stage.owner.batch_execute(rows).await.unwrap();
    eventually(PATIENCE * 2, async || stage.consumer.count() == 101).await;
    assert!(!replica.log().contains("halted"), "{}", replica.log());
}
