//! Two configurations of one relay: the one that came later waits until the other has gone.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::{CLOCK, PATIENCE, bookings, database, eventually, refuses, row, start, stdout_relay};
use crate::support::outside::{get, is_halted, line, lines, listener, printed};
use crate::support::{Process, broker, kafka_relay, records, toml, unique};

const INSERT: &str = "INSERT INTO public.bookings (payload) VALUES ('text')";
const WAITS: &str = "relay waits for replicas with another configuration";

/// The relay with another configuration.
fn other(relay: &str) -> String {
    relay.replace("[[relay]]\n", "[[relay]]\non_poison = \"dead_letter\"\n")
}

fn waits(process: &Process) -> usize {
    lines(process).iter().filter(|line| line["message"] == WAITS).count()
}

// Guarantee: failures.two-configurations
#[tokio::test(flavor = "multi_thread")]
async fn two_payloads_never_interleave_in_one_topic() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    let (servers, topic) = (broker.bootstrap_servers(), unique("shapes"));
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let column = kafka_relay("shapes", &topic, "");
    let row = column.replace("{ column = \"payload\" }", "{ row = true }");
    let spawn = |relays: &str, name: &str| {
        Process::spawn(&toml(&database, "relay", Some(&servers), relays), &["run", "--replica-id", name])
    };
    let read = async || records(&servers, &topic).await;
    let mut first = spawn(&column, "first");
    owner.batch_execute(INSERT).await.unwrap();
    eventually(PATIENCE * 2, async || read().await.len() == 1).await;
    let second = spawn(&row, "second");
    line(&second, "outbox-relay starts").await;
    let url = listener(&second).await;
    eventually(PATIENCE * 2, async || get(&format!("{url}/readyz")).await.0 == 200).await;
    for count in 2..=150 {
        owner.batch_execute(INSERT).await.unwrap();
        if count % 10 == 0 {
            eventually(PATIENCE * 2, async || read().await.len() == count).await;
        }
    }
    let strange = read().await.iter().filter(|record| record.text().starts_with('{')).count();
    assert_eq!(strange, 0, "records of the second configuration among 150 while the first runs");
    line(&second, WAITS).await;
    first.signal(Signal::TERM);
    assert_eq!(first.wait().await, Some(0), "{}", first.log());
    for _ in 0..20 {
        owner.batch_execute(INSERT).await.unwrap();
    }
    eventually(PATIENCE * 2, async || read().await.len() == 170).await;
    let shapes: Vec<bool> = read().await.iter().map(|record| record.text().starts_with('{')).collect();
    let changes = shapes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let rows = shapes.iter().filter(|row| **row).count();
    assert_eq!(changes, 1, "{rows} of {} records are rows, and shapes change {changes} times", shapes.len());
    assert!((1..=20).contains(&rows), "the first replica delivers until it stops: {rows} rows by the second");
}

// Guarantee: failures.two-configurations
#[tokio::test]
async fn waiting_replica_is_ready_says_so_and_halts_nothing() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relay = stdout_relay("shapes", "");
    let first = start(&database, &relay, "first");
    line(&first, "relay ready").await;
    let second = start(&database, &other(&relay), "second");
    refuses(&owner, "second", Some("config_mismatch")).await;
    // The row is there before the process has the answer.
    line(&second, WAITS).await;
    let (_, relays) = row(&owner, "second").await.unwrap();
    let message = relays[0]["refused"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("waits for replica first, which runs another configuration of relay shapes: "),
        "{message}"
    );
    let url = listener(&second).await;
    assert_eq!(get(&format!("{url}/readyz")).await.0, 200);
    let hash = relays[0]["config_hash"].as_str().unwrap();
    let info = format!("outbox_relay_config_info{{relay=\"shapes\",hash=\"{hash}\"}} 1");
    // The relay's own task sets it, while another writes the row.
    eventually(PATIENCE, async || get(&format!("{url}/metrics")).await.1.contains(&info)).await;
    let (_, metrics) = get(&format!("{url}/metrics")).await;
    assert!(metrics.contains("outbox_relay_config_waits{cursor=\"shapes\"} 1"), "{metrics}");
    assert!(!metrics.contains("outbox_relay_cursor_halted{"), "{metrics}");
    for count in 1..=20 {
        owner.batch_execute(INSERT).await.unwrap();
        eventually(PATIENCE, async || printed(&first, "shapes").len() == count).await;
    }
    assert_eq!((waits(&second), printed(&second, "shapes").len()), (1, 0));
    assert!(!is_halted(&owner, "shapes").await);
}

// Guarantee: failures.two-configurations
#[tokio::test]
async fn killed_older_replica_gives_way_at_once() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relay = stdout_relay("shapes", "");
    let mut first = start(&database, &relay, "first");
    line(&first, "relay ready").await;
    let second = start(&database, &other(&relay), "second");
    line(&second, WAITS).await;
    first.signal(Signal::KILL);
    first.wait().await;
    owner.batch_execute(INSERT).await.unwrap();
    eventually(PATIENCE, async || printed(&second, "shapes").len() == 1).await;
    refuses(&owner, "second", None).await;
}

// Guarantee: failures.same-instant
#[tokio::test]
async fn replicas_started_together_run_one_configuration() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relay = stdout_relay("shapes", "");
    for round in 0..3 {
        let name = |n: usize| format!("r{round}-{n}");
        let relays = [relay.clone(), other(&relay), relay.clone(), other(&relay)];
        let replicas: Vec<_> = relays.iter().enumerate().map(|(n, relay)| start(&database, relay, &name(n))).collect();
        eventually(PATIENCE * 2, async || {
            replicas.iter().filter(|replica| waits(replica) == 1 || replica.log().contains("\"relay ready\"")).count()
                == 4
        })
        .await;
        let running = "SELECT DISTINCT r.relays -> 0 ->> 'config_hash' FROM outbox.replica AS r \
                       WHERE r.stopped_at IS NULL AND r.id LIKE $1 AND r.relays -> 0 -> 'refused' = 'null'";
        let running = owner.query(running, &[&format!("r{round}-%")]).await.unwrap();
        assert_eq!(running.len(), 1, "one configuration has the claim");
        let waiting: BTreeSet<usize> =
            replicas.iter().enumerate().filter(|(_, r)| waits(r) == 1).map(|(n, _)| n % 2).collect();
        assert_eq!(waiting.len(), 1, "replicas of the other configuration wait, and no others");
        drop(replicas);
        let gone = "SELECT count(*) FROM pg_stat_activity \
                    WHERE application_name LIKE 'outbox-relay/r%' AND datname = current_database()";
        eventually(PATIENCE, async || owner.query_one(gone, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    }
}

#[tokio::test]
async fn go_on_runs_beside_another_configuration() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let first = start(&database, &stdout_relay("shapes", ""), "first");
    line(&first, "relay ready").await;
    let second = start(&database, &other(&stdout_relay("shapes", "on_config_change = \"go_on\"")), "second");
    line(&second, "relay ready").await;
    assert_eq!(waits(&second), 0);
    // The relay that was there first is not disturbed by one that does not care.
    owner.batch_execute(INSERT).await.unwrap();
    eventually(PATIENCE, async || printed(&first, "shapes").len() + printed(&second, "shapes").len() == 1).await;
    assert_eq!(waits(&first), 0);
}

// Guarantee: failures.two-configurations
#[tokio::test]
async fn older_replica_that_refuses_is_not_waited_for() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("REVOKE SELECT ON bookings FROM relay_stats").await.unwrap();
    let relay = stdout_relay("shapes", "");
    let blind = toml(&database, "relay_stats", None, &other(&relay));
    let first = Process::spawn(&blind, &["run", "--replica-id", "first"]);
    eventually(PATIENCE * 2, async || row(&owner, "first").await.is_some_and(|(_, r)| r[0]["refused"].is_object()))
        .await;
    let second = start(&database, &relay, "second");
    owner.batch_execute(INSERT).await.unwrap();
    eventually(PATIENCE * 2, async || printed(&second, "shapes").len() == 1).await;
    // Its checks pass now, and another configuration runs.
    owner.batch_execute("GRANT SELECT ON bookings TO relay_stats").await.unwrap();
    refuses(&owner, "first", Some("config_mismatch")).await;
    assert!(!first.log().contains("\"relay ready\""), "{}", first.log());
}

#[tokio::test]
async fn relays_of_due_work_requests_and_schedules_wait_too() {
    let sources = [
        "[relay.source.pending]\ntable = \"public.bookings\"\nkey = [\"id\"]\ndue = \"created_at\"\n[relay.sink.stdout]\n",
        "[relay.source.requests]\ntemplates = [\"welcome\"]\n[relay.sink.http]\nurl = \"http://127.0.0.1:9/m\"\n",
        "[relay.source.schedule]\n[relay.sink.stdout]\n",
    ];
    for source in sources {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let relay = format!("[[relay]]\nname = \"shapes\"\n{source}");
        let changed = match source {
            _ if source.contains("pending") => source.replace("due = ", "due_after = \"1h\"\ndue = "),
            _ if source.contains("requests") => source.replace("\"welcome\"", "\"welcome\", \"bye\""),
            _ => source.replace("schedule]\n", "schedule]\nschema = \"t_*\"\n"),
        };
        let mut first = start(&database, &relay, "first");
        let begun = async || first.log().contains("\"relay ready\"") || first.log().contains("ERROR");
        eventually(PATIENCE * 2, begun).await;
        assert!(!first.log().contains("ERROR"), "{}", first.log());
        let second = start(&database, &relay.replace(source, &changed), "second");
        line(&second, WAITS).await;
        assert!(!second.log().contains("\"relay ready\""), "{}", second.log());
        first.signal(Signal::TERM);
        assert_eq!(first.wait().await, Some(0), "{}", first.log());
        line(&second, "relay ready").await;
        refuses(&owner, "second", None).await;
    }
}

#[tokio::test]
async fn relay_begins_only_when_other_replicas_can_be_read() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let running = start(&database, &stdout_relay("shapes", ""), "running");
    line(&running, "relay ready").await;
    owner.batch_execute("REVOKE ALL ON outbox.replica FROM relay").await.unwrap();
    let mut begins = start(&database, &stdout_relay("shapes", ""), "begins");
    line(&begins, "relay cannot run; it is checked every 5 s").await;
    owner.batch_execute(INSERT).await.unwrap();
    eventually(PATIENCE, async || printed(&running, "shapes").len() == 1).await;
    owner.batch_execute("GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.replica TO relay").await.unwrap();
    eventually(PATIENCE * 3, async || begins.log().contains("\"relay ready\"")).await;
    begins.signal(Signal::TERM);
    assert_eq!(begins.wait().await, Some(0), "{}", begins.log());
}

// Guarantee: failures.same-instant
#[tokio::test]
async fn lost_sessions_leave_one_configuration_running() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relay = stdout_relay("shapes", "");
    let first = start(&database, &relay, "first");
    line(&first, "relay ready").await;
    let second = start(&database, &other(&relay), "second");
    line(&second, WAITS).await;
    // Taken for ended while nothing is heard of it, and then it is there again.
    first.signal(Signal::STOP);
    let end = "UPDATE outbox.replica SET stopped_at = clock_timestamp() WHERE id = 'first'";
    owner.batch_execute(end).await.unwrap();
    refuses(&owner, "second", None).await;
    let lost = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE application_name = 'outbox-relay/first' AND datname = current_database()";
    owner.execute(lost, &[]).await.unwrap();
    first.signal(Signal::CONT);
    refuses(&owner, "first", Some("config_mismatch")).await;
    let before = printed(&first, "shapes").len();
    for count in 1..=10 {
        owner.batch_execute(INSERT).await.unwrap();
        eventually(PATIENCE, async || printed(&second, "shapes").len() == count).await;
    }
    assert_eq!(printed(&first, "shapes").len(), before);
}
