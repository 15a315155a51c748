//! A partition that is away: nobody passes what lies there, and it comes back without a halt.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

use super::kills::state;
use super::*;

/// `cursor create` and `run --once` of another relay, which is to begin with the oldest row.
async fn begun_again(database: &Database) -> (Process, String) {
    let text = served(&text(database, "relay", &["c"]));
    let (code, _, log) = outbox_relay(&text, &["cursor", "create", "c", "--beginning"]).await;
    assert_eq!(code, Some(0), "{log}");
    (Process::spawn(&text, &["run", "--once"]), log)
}

async fn waits_for(owner: &Client, day: &str) {
    let sql = "SELECT last_error->>'message' FROM outbox.cursor_status WHERE cursor = 'c' \
               AND last_error->>'code' = 'partition_detached'";
    let told = || async {
        let row = owner.query_opt(sql, &[]).await.unwrap();
        row.is_some_and(|row| row.get::<_, String>(0).contains(day))
    };
    eventually(PATIENCE, told).await;
}

async fn positions(owner: &Client) -> Vec<(String, bool)> {
    let sql = "SELECT name, position_id IS NOT NULL FROM outbox.cursor ORDER BY name";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

// Guarantee: retention.detached
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_waits_below_a_partition_that_is_away_and_it_comes_back_without_halting_another() {
    for (role, left) in
        [("relay", "detached"), ("relay", "detaching"), ("postgres", "detached"), ("postgres", "detaching")]
    {
        let database = database().await;
        let owner = database.connect("postgres").await;
        let day = aged(&owner).await;
        let running = Process::spawn(&served(&text(&database, "relay", &["m"])), &["run"]);
        insert(&owner).await;
        passed(&owner, &running, "m", 3).await;
        let detach = format!("ALTER TABLE outbox.message DETACH PARTITION outbox.{day}");
        if left == "detached" {
            owner.batch_execute(&format!("{detach} CONCURRENTLY")).await.unwrap();
        } else {
            let mut writer = database.connect("postgres").await;
            let open = writer.transaction().await.unwrap();
            open.batch_execute("INSERT INTO outbox.message (topic) VALUES ('rolled back')").await.unwrap();
            owner.batch_execute("SET lock_timeout = '200ms'").await.unwrap();
            owner.batch_execute(&format!("{detach} CONCURRENTLY")).await.expect_err("a writer is open");
            open.rollback().await.unwrap();
        }
        assert_eq!(state(&owner, &day).await.as_deref(), Some(left));
        // The running one goes on without the day, and forgets it.
        insert(&owner).await;
        passed(&owner, &running, "m", 4).await;

        let (mut again, log) = begun_again(&database).await;
        assert!(log.contains(&format!("partition {day} is detached")), "{log}");
        waits_for(&owner, &day).await;
        eventually(PATIENCE, || async { again.log().matches("waiting for a partition").count() > 4 }).await;
        // The sink has nothing to do with it.
        let open = "SELECT circuit_opened_at IS NOT NULL FROM outbox.cursor_status WHERE cursor = 'c'";
        assert!(!owner.query_one(open, &[]).await.unwrap().get::<_, bool>(0), "{}", again.log());
        // Nor does it close a circuit that is open.
        owner
            .batch_execute("UPDATE outbox.cursor_status SET circuit_opened_at = now() WHERE cursor = 'c'")
            .await
            .unwrap();
        let waited = again.log().matches("waiting for a partition").count();
        eventually(PATIENCE, || async { again.log().matches("waiting for a partition").count() > waited + 1 }).await;
        assert!(owner.query_one(open, &[]).await.unwrap().get::<_, bool>(0), "{}", again.log());
        assert_eq!(positions(&owner).await, [("c".to_owned(), false), ("m".to_owned(), true)]);
        let document = prune(&text(&database, role, &[]), "--yes").await;
        assert_eq!(told(&document, "messages", &day).1, 0, "{document}");
        assert_eq!(state(&owner, &day).await.as_deref(), Some("attached"), "{role} {left}: {document}");
        assert_eq!(again.wait().await, Some(0), "{}", again.log());
        assert_eq!(printed(&again, "c")[..2], ["1", "2"], "{role} {left}");
        assert_eq!(printed(&again, "c").len(), 4);
        insert(&owner).await;
        passed(&owner, &running, "m", 5).await;
        assert!(!running.log().contains("halted"), "{role} {left}: {}", running.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_returns_in_same_pass_when_reader_is_in_its_way_at_first() {
    for role in ["relay", "postgres"] {
        let database = database().await;
        let owner = database.connect("postgres").await;
        let day = aged(&owner).await;
        let mut session = database.connect("postgres").await;
        let writer = session.transaction().await.unwrap();
        writer.batch_execute("INSERT INTO outbox.message (topic) VALUES ('rolled back')").await.unwrap();
        owner.batch_execute("SET lock_timeout = '200ms'").await.unwrap();
        let detach = format!("ALTER TABLE outbox.message DETACH PARTITION outbox.{day} CONCURRENTLY");
        let error = owner.batch_execute(&detach).await.expect_err("a writer is open");
        assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE), "{error:?}");
        writer.rollback().await.unwrap();
        assert_eq!(state(&owner, &day).await.as_deref(), Some("detaching"));
        let (code, _, log) =
            outbox_relay(&served(&text(&database, "relay", &["c"])), &["cursor", "create", "c", "--beginning"]).await;
        assert_eq!(code, Some(0), "{log}");

        // FINALIZE waits for older snapshots (PostgreSQL, ALTER TABLE ... DETACH PARTITION).
        let reader = session.transaction().await.unwrap();
        reader
            .batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT FROM ONLY outbox.message")
            .await
            .unwrap();
        let mut prune = Process::spawn(&text(&database, role, &[]), &["prune", "--yes", "-o", "json"]);
        let waits = "SELECT query_start::text FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay %' \
                     AND datname = current_database() AND wait_event_type = 'Lock'";
        let begun = Mutex::new(BTreeSet::new());
        let twice = || async {
            let waiting = owner.query(waits, &[]).await.unwrap();
            let mut begun = begun.lock().unwrap();
            begun.extend(waiting.iter().map(|row| row.get::<_, String>(0)));
            begun.len() >= 2
        };
        eventually(PATIENCE * 2, twice).await;
        reader.rollback().await.unwrap();
        assert_eq!(prune.wait().await, Some(0), "{}", prune.log());
        assert_eq!(state(&owner, &day).await.as_deref(), Some("attached"), "{role}: {} {}", prune.log(), prune.out());
    }
}

// Guarantee: retention.writers
#[tokio::test(flavor = "multi_thread")]
async fn writers_wait_once_for_a_pass_that_cannot_have_the_table_and_no_age_drops_nothing() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    aged(&owner).await;
    let (_, day) = past(&owner).await;
    for back in 1..=9 {
        let sql = format!(
            "DO $$ DECLARE d date := '{day}'::date - {back}; BEGIN EXECUTE format('CREATE TABLE outbox.message_%s \
             PARTITION OF outbox.message FOR VALUES FROM (%L) TO (%L)', to_char(d, 'YYYYMMDD'), d, d + 1); END $$"
        );
        owner.batch_execute(&sql).await.unwrap();
    }
    let process = Process::spawn(&served(&text(&database, "relay", &["m"])), &["run"]);
    passed(&owner, &process, "m", 2).await;
    drop(process);
    let count = "SELECT count(*) FROM outbox.message_partition WHERE upper < now() - interval '7 days'";
    let row = owner.query_one("SELECT partition, held_by FROM outbox.prune_messages(NULL)", &[]).await.unwrap();
    assert_eq!((row.get::<_, Option<String>>(0), row.get::<_, Option<String>>(1)), (None, None));
    assert_eq!(owner.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 10, "no age is not all");

    let mut reader = database.connect("postgres").await;
    let open = reader.transaction().await.unwrap();
    open.query("SELECT FROM ONLY outbox.message", &[]).await.unwrap();
    let begun = Instant::now();
    let row = owner.query_one("SELECT held_by FROM outbox.prune_messages('7 days')", &[]).await.unwrap();
    let took = begun.elapsed();
    assert!(row.get::<_, String>(0).starts_with("locks of pid"), "{row:?}");
    // Ten waits of a second are ten; one is one, on a machine however busy.
    assert!(took.as_secs() < 8, "one wait, not one for each of ten partitions: {took:?}");
    open.rollback().await.unwrap();
    let row = owner.query_one("SELECT held_by FROM outbox.prune_messages('7 days')", &[]).await.unwrap();
    assert_eq!(row.get::<_, Option<String>>(0), None);
    assert_eq!(owner.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 9, "the oldest is gone");
}
