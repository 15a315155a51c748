//! What waits under a name is counted within moments, however much has ended.

use tokio_postgres::Client;

use crate::support::database;

/// Most has ended; little waits, of two relays.
const HISTORY: &str = "INSERT INTO outbox.request (request_id, holds_key, user_id, template, parameters, relay, status, not_before, completed_at) \
     SELECT gen_random_uuid(), false, 'u', 't', '{}', CASE i % 2 WHEN 0 THEN 'old' ELSE 'new' END, \
     CASE WHEN i < 7 THEN 'pending' ELSE 'completed' END, now(), CASE WHEN i >= 7 THEN now() END FROM generate_series(1, 30000) AS i; \
     INSERT INTO outbox.action (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, status, payload, on_interrupted, timeout, \
     finished_at) SELECT -(i % 100) - 1, 's', '', CASE i % 2 WHEN 0 THEN 'old' ELSE 'new' END, t.at, t.at, t.at, \
     CASE WHEN i < 4 THEN 'due' WHEN i BETWEEN 101 AND 103 THEN 'queued' ELSE 'completed' END, '{}', 'retry', '1 minute', \
     CASE WHEN i >= 4 AND i NOT BETWEEN 101 AND 103 THEN t.at END \
     FROM generate_series(1, 30000) AS i, LATERAL (SELECT now() - i * interval '1 second' AS at) AS t";

/// The plan with what was read, and the rows that it answers as text.
async fn planned(owner: &Client, sql: &str) -> (String, Vec<String>) {
    owner.batch_execute(&format!("PREPARE counts (text[], bigint) AS {sql}")).await.unwrap();
    let explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE counts (ARRAY['old'], 10000)";
    let plan = owner.query(explain, &[]).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let counts = owner.simple_query("EXECUTE counts (ARRAY['old'], 10000)").await.unwrap();
    owner.batch_execute("DEALLOCATE counts").await.unwrap();
    let counts = counts.into_iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or("-")).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    });
    (plan.join("\n"), counts.collect())
}

#[tokio::test]
async fn counts_of_what_waits_read_nothing_that_has_ended() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(HISTORY).await.unwrap();
    for statistics in ["", "ANALYZE outbox.request, outbox.action, outbox.schedule"] {
        owner.batch_execute(statistics).await.unwrap();
        for mode in ["force_generic_plan", "force_custom_plan"] {
            owner.batch_execute(&format!("SET plan_cache_mode = '{mode}'")).await.unwrap();
            for (name, expected) in [
                // One due action of the two schedules with an even number, and the one that is queued behind it.
                ("cursor/sql/open_work", "old 0 2 3"),
                ("jobs/sql/ledger_orphans", "new 3"),
            ] {
                let sql = std::fs::read_to_string(format!("src/{name}.sql")).unwrap();
                let (plan, counts) = planned(&owner, &sql).await;
                assert_eq!(counts, [expected], "{plan}");
                let left_out = plan.lines().filter_map(|line| line.trim().strip_prefix("Rows Removed by Filter: "));
                let left_out: u32 = left_out.map(|rows| rows.parse::<u32>().unwrap()).sum();
                assert!(left_out < 10 && !plan.contains("Seq Scan on request"), "{mode}, {statistics:?}: {plan}");
                assert!(!plan.contains("Seq Scan on action"), "{mode}, {statistics:?}: {plan}");
            }
        }
    }
}
