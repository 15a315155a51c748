//! Days are made ahead, and a table of before is taken over.

use super::*;

/// The partitions by name, `message_` left out, days as their distance from today.
async fn partitions(owner: &Client) -> Vec<(String, String, i64)> {
    let sql = "SELECT COALESCE((lower::date - (now() AT TIME ZONE 'UTC')::date)::text, '-'), \
               COALESCE((upper::date - (now() AT TIME ZONE 'UTC')::date)::text, '-'), \
               (SELECT count(*) FROM outbox.message AS m WHERE m.tableoid = p.relation) \
               FROM (SELECT relation, NULLIF(lower, '-infinity') AS lower, NULLIF(upper, 'infinity') AS upper \
               FROM outbox.message_partition WHERE state = 'attached') AS p ORDER BY lower NULLS FIRST";
    let rows = owner.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

fn days<const N: usize>(days: [(&str, &str, i64); N]) -> Vec<(String, String, i64)> {
    days.map(|(lower, upper, rows)| (lower.to_owned(), upper.to_owned(), rows)).into()
}

const AHEAD: [(&str, &str, i64); 4] = [("1", "2", 0), ("2", "3", 0), ("3", "4", 0), ("4", "-", 0)];

fn with<const N: usize>(first: [(&str, &str, i64); N]) -> Vec<(String, String, i64)> {
    [days(first), days(AHEAD)].concat()
}

// Guarantee: retention.days-ahead
#[tokio::test(flavor = "multi_thread")]
async fn days_are_made_ahead_and_no_insert_fails_while_nobody_makes_them() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute("SET timezone = 'UTC'; GRANT SELECT ON outbox.message TO relay; GRANT INSERT ON outbox.message TO app; GRANT USAGE ON SCHEMA outbox TO app")
        .await
        .unwrap();
    // The tests' template may have been made before a midnight: what counts is the day that its table was made on.
    let today = "SELECT (applied_at AT TIME ZONE 'UTC')::date - (now() AT TIME ZONE 'UTC')::date FROM outbox.version ORDER BY 1 DESC LIMIT 1";
    let made: i32 = owner.query_one(today, &[]).await.unwrap().get(0);
    let day = |days: i32| (made + days).to_string();
    let ahead = (0..4).map(|days| (day(days), day(days + 1), 0)).chain([(day(4), "-".to_owned(), 0)]);
    assert_eq!(partitions(&owner).await, ahead.collect::<Vec<_>>());
    // No relay ran for five days: the rest begins where the days ended.
    let remove = "DO $$ DECLARE p record; BEGIN FOR p IN SELECT name FROM outbox.message_partition LOOP \
                EXECUTE format('DROP TABLE outbox.%I', p.name); END LOOP; END $$; \
                DO $$ BEGIN EXECUTE format('CREATE TABLE outbox.message_rest PARTITION OF outbox.message \
                FOR VALUES FROM (%L) TO (MAXVALUE)', current_date - 2); END $$";
    owner.batch_execute(remove).await.unwrap();
    let app = database.connect("app").await;
    insert(&app).await;
    assert_eq!(partitions(&owner).await, days([("-2", "-", 1)]));
    let text = text(&database, "relay", &["m"]);
    let process = Process::spawn(&text, &["run"]);
    passed(&owner, &process, "m", 1).await;
    let made = || async { partitions(&owner).await == days([("-2", "4", 1), ("4", "-", 0)]) };
    eventually(PATIENCE, made).await;
    insert(&app).await;
    passed(&owner, &process, "m", 2).await;
    assert!(!process.log().contains("halted"), "{}", process.log());
    drop(process);
    // Without rows in the rest, days that are over are left out.
    owner.batch_execute(&format!("DELETE FROM outbox.message; {remove}")).await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, || async { partitions(&owner).await == with([("0", "1", 0)]) }).await;
    insert(&app).await;
    passed(&owner, &process, "m", 1).await;
}

// Guarantee: retention.partitioning
#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_rows_and_a_running_relay_is_partitioned_and_back_with_nothing_lost_or_sent_twice() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let admin = text(&database, "postgres", &[]);
    assert_eq!(outbox_relay(&admin, &["migrate", "down", "--to", "4"]).await.0, Some(0));
    owner
        .batch_execute("SET timezone = 'UTC'; GRANT SELECT ON outbox.message TO relay; GRANT INSERT ON outbox.message TO app; GRANT USAGE ON SCHEMA outbox TO app; INSERT INTO outbox.message (topic) SELECT 't' FROM generate_series(1, 50)")
        .await
        .unwrap();
    let (code, _, log) = outbox_relay(&admin, &["migrate", "up", "--relay-role", "relay"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(partitions(&owner).await.is_empty(), "a table with rows is left as it is");
    let (code, out, _) = outbox_relay(&admin, &["migrate", "status"]).await;
    assert!(out.contains("SELECT outbox.partition_messages()"), "{code:?} {out}");
    let document = prune(&text(&database, "relay", &[]), "--dry-run").await;
    assert!(told(&document, "messages", "outbox.message").2[0].1.contains("outbox.partition_messages()"), "{document}");

    let process = Process::spawn(&text(&database, "relay", &["m"]), &["run"]);
    passed(&owner, &process, "m", 50).await;
    let app = database.connect("app").await;
    let writer = tokio::spawn(async move {
        for _ in 0..300 {
            insert(&app).await;
        }
        app
    });
    eventually(PATIENCE, || async { printed(&process, "m").len() > 80 }).await;
    let before: String = owner.query_one("SELECT outbox.partition_messages()", &[]).await.unwrap().get(0);
    assert!(before.starts_with("message_before_"), "{before}");
    let app = writer.await.unwrap();
    passed(&owner, &process, "m", 350).await;
    let all: Vec<String> = (1..=350).map(|id| id.to_string()).collect();
    assert_eq!(printed(&process, "m"), all);
    assert!(!process.log().contains("halted"), "{}", process.log());
    let found = partitions(&owner).await;
    assert_eq!(found, days([("-", "2", 350), ("2", "3", 0), ("3", "4", 0), ("4", "-", 0)]));
    let (_, out, log) = outbox_relay(&text(&database, "relay", &["m"]), &["check", "-o", "json"]).await;
    assert!(finding(&json(&out), "created_at_proven").is_some(), "{out}{log}");
    assert!(finding(&json(&out), "late_rows_swept").is_some(), "rows that come late are found as before: {out}");
    drop(process);
    let (code, _, log) = outbox_relay(&admin, &["migrate", "down", "--to", "4"]).await;
    assert_eq!(code, Some(0), "{log}");
    insert(&app).await;
    let sql = "SELECT count(*), max(id), count(DISTINCT id) FROM outbox.message";
    let row = owner.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)), (351, 351, 351));
    assert_eq!(outbox_relay(&admin, &["migrate", "up", "--relay-role", "relay"]).await.0, Some(0));
    let process = Process::spawn(&text(&database, "relay", &["m"]), &["run"]);
    passed(&owner, &process, "m", 1).await;
    assert_eq!(printed(&process, "m"), ["351"], "the cursor goes on where it stood");
}

// Guarantee: retention.drop
#[tokio::test]
async fn restored_rows_with_another_servers_transaction_numbers_hold_no_day() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let day = aged(&owner).await;
    let restored =
        "UPDATE outbox.message SET txid = (pg_current_xact_id()::text::bigint + 1000000)::text::xid8 WHERE id = 2";
    assert_eq!(owner.execute(restored, &[]).await.unwrap(), 1);
    let text = text(&database, "relay", &["m"]);
    let process = Process::spawn(&served(&text), &["run"]);
    passed(&owner, &process, "m", 2).await;
    insert(&database.connect("app").await).await;
    passed(&owner, &process, "m", 3).await;
    assert_eq!(holder(&text, &day).await, None);
    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "messages", &day).1, 1, "{document}");
}
