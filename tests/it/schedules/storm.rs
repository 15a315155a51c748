//! Random kills: no instant twice, none lost.

use std::collections::BTreeMap;
use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};
use rustix::process::Signal;

use super::{clients, relay};
use crate::support::{PATIENCE, Process, database, eventually, toml};

const SCHEDULES: i64 = 30;
const KILLS: usize = 20;
/// Far fewer than the schedules: one whose replica is killed again and again waits for longer each time, and the others go on.
const IN_FLIGHT: usize = 4;

// Guarantee: schedules.kills
#[tokio::test(flavor = "multi_thread")]
async fn over_twenty_random_kills_no_occurrence_is_made_twice_and_none_is_lost() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Late(Duration::from_millis(50))).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, &format!("in_flight = {IN_FLIGHT}"), ""));
    let mut replicas =
        [Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"])];
    app.execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, rule, missed, overlap) SELECT 's' || i, CASE WHEN i % 2 = 0 THEN 't' || i ELSE '' END, 'jobs', \
         'FREQ=SECONDLY', 'all', 'queue' FROM generate_series(1, $1::bigint) AS i",
        &[&SCHEDULES],
    )
    .await
    .unwrap();
    eventually(PATIENCE * 2, async || provider.count() > 20).await;
    for kill in 0..KILLS {
        let at = fastrand::usize(..replicas.len());
        let seen = provider.count();
        replicas[at].signal(Signal::KILL);
        replicas[at].wait().await;
        replicas[at] = Process::spawn(&text, &["run"]);
        // At a random moment of the work that goes on.
        let more = seen + fastrand::usize(1..15);
        eventually(PATIENCE * 3, async || provider.count() >= more).await;
        println!("kill {kill} behind {seen} requests");
    }
    app.batch_execute("UPDATE outbox.schedule SET ends_at = now()").await.unwrap();
    let rest = "SELECT count(*) FROM outbox.action WHERE status IN ('queued', 'due', 'running')";
    let unplanned = "SELECT count(*) FROM outbox.schedule WHERE next_at IS DISTINCT FROM 'infinity'";
    eventually(PATIENCE * 12, async || {
        let left: i64 = owner.query_one(rest, &[]).await.unwrap().get(0);
        left + owner.query_one(unplanned, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    // Each second of each schedule, from its first to its last, is there once.
    let sql = "SELECT schedule, count(*), count(DISTINCT planned_at), \
               (extract(epoch FROM max(planned_at) - min(planned_at)) + 1)::bigint, \
               bool_and(status = 'completed'), min(planned_at) <= (SELECT changed_at FROM outbox.schedule AS s WHERE s.name = schedule) \
               FROM outbox.action GROUP BY schedule";
    let mut occurrences = 0;
    for row in owner.query(sql, &[]).await.unwrap() {
        let name: String = row.get(0);
        let (rows, distinct, span): (i64, i64, i64) = (row.get(1), row.get(2), row.get(3));
        assert_eq!((rows, distinct), (span, span), "{name}");
        assert!(row.get::<_, bool>(4), "{name}: all completed");
        occurrences += rows;
    }
    let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
    for received in provider.received() {
        *by_key.entry(received.request.key).or_default() += 1;
    }
    assert_eq!(i64::try_from(by_key.len()).unwrap(), occurrences, "each was sent");
    let again = by_key.values().filter(|count| **count > 1).count();
    println!("{occurrences} occurrences over {KILLS} kills, {again} of them sent again with the same key");
    assert!(again <= KILLS * IN_FLIGHT);
}
