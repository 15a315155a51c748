//! What the looks for late rows cost.

use std::time::Instant;

use outbox_relay::late::Snapshot;

use super::{SWEPT, run};
use crate::support::{CLOCK, Reader, bookings, database};

const ROWS: u32 = 300_000;

// Guarantee: late.cost
#[tokio::test]
async fn look_for_late_rows_reads_its_index_whatever_the_statistics_and_the_size_of_the_table() {
    for (analyzed, swept_first) in [(false, false), (true, false), (true, true)] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, "ALTER TABLE bookings SET (autovacuum_enabled = off)").await;
        let rows = format!("INSERT INTO bookings (payload) SELECT repeat('x', 100) FROM generate_series(1, {ROWS})");
        let steps = if swept_first { [SWEPT, &rows] } else { [&rows, SWEPT] };
        for step in steps {
            run(&owner, step).await;
        }
        if analyzed {
            run(&owner, "VACUUM ANALYZE bookings").await;
        }
        let reader = Reader::new(&database, "relay").await;
        let shape = reader.shape.lock().await.clone();
        assert!(shape.sweep.is_some(), "the column and its index are there");
        let relay = database.connect("relay").await;
        let last = relay.query_one("SELECT pg_current_snapshot()::text, created_at, id::text FROM bookings ORDER BY created_at DESC, id DESC LIMIT 1", &[]);
        let last = last.await.unwrap();
        let (snapshot, id): (String, String) = (last.get(0), last.get(2));
        let at: std::time::SystemTime = last.get(1);
        let bound = (Snapshot::parse(&snapshot).unwrap().next() + 100_000).to_string();
        run(&owner, "INSERT INTO bookings (payload) VALUES ('new')").await;
        for mode in ["force_generic_plan", "force_custom_plan"] {
            run(&relay, &format!("SET plan_cache_mode = {mode}; SET jit = off")).await;
            let explain = format!("EXPLAIN (COSTS off) {}", shape.is_any_late_sql());
            let text = explain
                .replace("$1", "'c'")
                .replace("$2", &format!("'{snapshot}'"))
                .replace("$3", "clock_timestamp()")
                .replace("$4", &format!("'{id}'"))
                .replace("$5", &format!("'{bound}'"));
            let plan: Vec<String> = relay.query(&text, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            assert_eq!(plan.matches("using bookings_txid on").count(), 2, "{mode}: {plan}");
            assert!(!plan.contains("Seq Scan on bookings"), "{mode}: {plan}");
            let explain = format!("EXPLAIN (COSTS off) {}", shape.cursors_with_late_rows_sql().unwrap());
            let idle = relay.query(&explain.replace("$1", "'{c}'"), &[]).await.unwrap();
            let idle: Vec<String> = idle.iter().map(|row| row.get(0)).collect();
            let idle = idle.join("\n");
            assert_eq!(idle.matches("using bookings_txid on").count(), 3, "{mode}: {idle}");
            let statement = relay.prepare(&shape.is_any_late_sql()).await.unwrap();
            let mut least = std::time::Duration::MAX;
            for _ in 0..20 {
                let begun = Instant::now();
                let late: bool =
                    relay.query_one(&statement, &[&"c", &snapshot, &at, &id, &bound]).await.unwrap().get(0);
                least = least.min(begun.elapsed());
                assert!(!late);
            }
            println!("{mode}, analyzed {analyzed}, column first {swept_first}: {least:?} with the round trip");
            assert!(least < std::time::Duration::from_millis(20), "{least:?}");
        }
    }
}
