//! The index that shards are read by: found missing, made as printed and by `migrate up --indexes`.

use std::time::Duration;

use outbox_testkit::bookings::{CreatedAt, Layout, Table};
use serde_json::Value;

use super::Stage;
use crate::support::{PATIENCE, eventually, outbox_relay};

/// The findings of `check` with this code.
async fn findings(toml: &str, code: &str) -> Vec<Value> {
    let (_, out, log) = outbox_relay(toml, &["check", "-o", "json"]).await;
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {log}"));
    report["findings"].as_array().unwrap().iter().filter(|finding| finding["code"] == code).cloned().collect()
}

// Guarantee: shards.index
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_index_refuses_the_relay_and_what_check_prints_fixes_it() {
    for layout in [Layout::Plain, Layout::Ranges] {
        let stage = Stage::new(Table { created_at: CreatedAt::ClockTimestamp, layout }).await;
        let toml = stage.toml("relay", 4);
        let replica = stage.replica("r1", 4);
        let halted =
            "SELECT count(*) FROM outbox.cursor_status WHERE halted AND last_error ->> 'code' = 'shard_index_missing'";
        eventually(PATIENCE * 2, async || stage.owner.query_one(halted, &[]).await.unwrap().get::<_, i64>(0) == 4)
            .await;
        let found = findings(&toml, "shard_index_missing").await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&found[0]["level"], &found[0]["relay"]), (&"error".into(), &"events".into()));
        let waits = found[0]["message"].as_str().unwrap().contains("writers wait");
        assert_eq!(waits, layout == Layout::Ranges, "{found:?}");
        stage.owner.batch_execute(found[0]["fix_sql"].as_str().unwrap()).await.unwrap();
        assert!(findings(&toml, "shard_index_missing").await.is_empty());
        assert_eq!(findings(&toml, "shards").await.len(), 1);
        // The replica looks again by itself.
        let writers = stage.load(Some(100.0)).await;
        stage.goes_on(50).await;
        writers.stop().await.unwrap();
        drop(replica);
    }
}

// Guarantee: shards.index
#[tokio::test(flavor = "multi_thread")]
async fn migrate_makes_the_indexes_again_where_a_build_has_failed_and_says_what_it_does() {
    let stage = Stage::new(Table::PLAIN).await;
    let toml = stage.toml("postgres", 4);
    stage
        .owner
        .batch_execute(
            "INSERT INTO bookings (customer, region, phone, payload) \
             SELECT 'c' || n % 100, 'r', 'p', 'x' FROM generate_series(1, 20000) n",
        )
        .await
        .unwrap();
    // A writer that does not end holds the build up until it is killed: an index that is not valid stays behind.
    let mut writer = stage.database.connect("postgres").await;
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings (customer, region, phone, payload) VALUES ('w', 'r', 'p', 'x')")
        .await
        .unwrap();
    let mut build = crate::support::Process::spawn(&toml, &["migrate", "up", "--indexes"]);
    let building = "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indrelid = 'bookings'::regclass";
    eventually(PATIENCE * 2, async || stage.owner.query_one(building, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    let (code, out, log) = outbox_relay(&toml, &["migrate", "up", "--indexes"]).await;
    assert!(code == Some(1) && log.contains("is being built by pid"), "{out} {log}");
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND datname = current_database()";
    stage.owner.batch_execute(ended).await.unwrap();
    assert_eq!(build.wait().await, Some(1), "{}", build.log());
    assert!(build.out().contains("CREATE INDEX CONCURRENTLY IF NOT EXISTS"), "{}", build.out());
    open.commit().await.unwrap();
    let found = findings(&stage.toml("relay", 4), "shard_index_missing").await;
    assert!(found[0]["message"].as_str().unwrap().contains("is not valid"), "{found:?}");
    assert!(
        found[0]["fix_sql"].as_str().unwrap().starts_with("DROP INDEX CONCURRENTLY public.bookings_4_shards_"),
        "{found:?}"
    );
    let (code, out, log) = outbox_relay(&toml, &["migrate", "up", "--indexes"]).await;
    assert!(
        code == Some(0) && out.contains("DROP INDEX CONCURRENTLY") && log.contains("is dropped first"),
        "{out} {log}"
    );
    assert!(findings(&stage.toml("relay", 4), "shard_index_missing").await.is_empty());
    let (code, out, _) = outbox_relay(&toml, &["migrate", "up", "--indexes"]).await;
    assert!(code == Some(0) && out.contains("the index for its 4 shards is there"), "{out}");
    // Nothing was held up meanwhile, and the relay's own role reads by it.
    let replica = stage.replica("r1", 4);
    eventually(Duration::from_secs(30), async || stage.consumer.count() == 20_001).await;
    drop(replica);
}

// Guarantee: shards.index
#[tokio::test(flavor = "multi_thread")]
async fn indexes_of_another_key_number_or_order_are_not_taken_for_the_one_that_is_needed() {
    let stage = Stage::new(Table::PLAIN).await;
    let toml = stage.toml("relay", 4);
    let hash = |column: &str, of: u32| {
        format!("((COALESCE(hashtextextended({column}::text COLLATE \"C\", 0), 0) & 2147483647) % {of})")
    };
    for columns in [
        format!("{}, created_at, id", hash("customer", 8)),
        format!("{}, created_at, id", hash("region", 4)),
        format!("{}, created_at DESC, id", hash("customer", 4)),
        format!("{}, id, created_at", hash("customer", 4)),
        "customer, created_at, id".to_owned(),
    ] {
        stage.owner.batch_execute(&format!("CREATE INDEX ON bookings ({columns})")).await.unwrap();
        assert_eq!(findings(&toml, "shard_index_missing").await.len(), 1, "{columns}");
    }
    // Whatever it is called, and however it is written.
    let own = format!("CREATE INDEX anything ON bookings ({}, created_at, id)", hash("customer", 4));
    stage.owner.batch_execute(&own).await.unwrap();
    assert!(findings(&toml, "shard_index_missing").await.is_empty());
}
