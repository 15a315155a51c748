//! A drop that is killed at each of its steps.

use rustix::process::Signal;

use super::*;

/// Where the owner's `prune` can be stopped: what stands in its way, and the partition's state when it waits there.
const STEPS: [(&str, &str); 3] = [
    ("BEGIN; LOCK TABLE outbox.message IN SHARE UPDATE EXCLUSIVE MODE", "attached"),
    ("BEGIN; INSERT INTO outbox.message (topic) VALUES ('t')", "detaching"),
    ("BEGIN; LOCK TABLE ONLY outbox.DAY IN ACCESS SHARE MODE", "detaching"),
];

pub(super) async fn state(owner: &Client, day: &str) -> Option<String> {
    let sql = "SELECT state FROM outbox.message_partition WHERE name = $1";
    owner.query_opt(sql, &[&day]).await.unwrap().map(|row| row.get(0))
}

/// Runs the owner's `prune`, and kills it when it waits for `blocker`.
async fn killed(database: &Database, owner: &Client, text: &str, blocker: &str, day: &str) {
    let other = database.connect("postgres").await;
    other.batch_execute(&blocker.replace("DAY", day)).await.unwrap();
    let mut process = Process::spawn(text, &["prune", "--yes"]);
    let waits = "SELECT EXISTS (SELECT FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) \
                 WHERE NOT l.granted AND a.application_name = 'outbox-relay prune' AND a.datname = current_database())";
    eventually(PATIENCE, || async { owner.query_one(waits, &[]).await.unwrap().get(0) }).await;
    process.signal(Signal::KILL);
    assert_eq!(process.wait().await, None);
    let gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'outbox-relay prune' \
                AND datname = current_database())";
    eventually(PATIENCE, || async { owner.query_one(gone, &[]).await.unwrap().get(0) }).await;
    other.batch_execute("COMMIT").await.unwrap();
}

// Guarantee: retention.killed-drop
#[tokio::test(flavor = "multi_thread")]
async fn a_drop_that_is_killed_at_any_step_is_finished_by_the_next_one_and_no_row_is_lost() {
    // The next one is the owner's, or a replica's.
    for next in ["postgres", "relay"] {
        let database = database().await;
        let owner = database.connect("postgres").await;
        let day = aged(&owner).await;
        let relay = text(&database, "relay", &["m"]);
        let process = Process::spawn(&served(&relay), &["run"]);
        passed(&owner, &process, "m", 2).await;
        let mut rows = 2;
        for (blocker, left) in STEPS {
            killed(&database, &owner, &text(&database, "postgres", &[]), blocker, &day).await;
            rows += usize::from(blocker.contains("INSERT"));
            assert_eq!(state(&owner, &day).await.as_deref(), Some(left), "{blocker}");
            insert(&owner).await;
            rows += 1;
            passed(&owner, &process, "m", rows).await;
        }
        if next == "postgres" {
            // Killed between the end of the detaching and the drop.
            owner
                .batch_execute(&format!("ALTER TABLE outbox.message DETACH PARTITION outbox.{day} FINALIZE"))
                .await
                .unwrap();
            assert_eq!(state(&owner, &day).await.as_deref(), Some("detached"));
        }
        let document = prune(&text(&database, next, &[]), "--yes").await;
        assert_eq!(told(&document, "messages", &day).1, 1, "{document}");
        assert!(!exists(&owner, &day).await);
        insert(&owner).await;
        passed(&owner, &process, "m", rows + 1).await;
        let all: Vec<String> = (1..=rows + 1).map(|id| id.to_string()).collect();
        assert_eq!(printed(&process, "m"), all);
        assert!(!process.log().contains("halted"), "{}", process.log());
    }
}

// Guarantee: retention.killed-drop
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_on_its_way_out_comes_back_when_somebody_needs_it_after_all() {
    for role in ["postgres", "relay"] {
        let database = database().await;
        let owner = database.connect("postgres").await;
        let day = aged(&owner).await;
        let relay = text(&database, "relay", &["m"]);
        assert_eq!(outbox_relay(&relay, &["cursor", "create", "m", "--beginning"]).await.0, Some(0));
        owner
            .batch_execute(&format!("ALTER TABLE outbox.message DETACH PARTITION outbox.{day} CONCURRENTLY"))
            .await
            .unwrap();
        let document = prune(&text(&database, role, &[]), "--yes").await;
        let held = vec![(Some(1), "cursor m at the beginning")];
        assert_eq!(told(&document, "messages", &day), (0, 0, held));
        assert_eq!(state(&owner, &day).await.as_deref(), Some("attached"), "{role}");
        let process = Process::spawn(&served(&relay), &["run"]);
        passed(&owner, &process, "m", 2).await;
    }
}
