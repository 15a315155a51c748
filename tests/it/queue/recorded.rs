//! What was sent is recorded, whatever stands in between.

use rustix::process::Signal;

use super::kinds::{DEADLINE, Fixture};
use super::{Kind, sent};
use crate::support::outside::{line, lines};
use crate::support::{PATIENCE, Process, eventually};

/// A replica has sent these jobs, and the receiver has not answered yet.
async fn sending(fixture: &Fixture, jobs: &[&str]) -> Process {
    let process = fixture.replica("first");
    line(&process, "relay ready").await;
    fixture.receiver.hold();
    for job in jobs {
        fixture.add(job).await;
    }
    eventually(PATIENCE, async || sent(&fixture.receiver).len() == jobs.len()).await;
    process
}

pub async fn outcome_is_recorded_while_checks_fail(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "30s", "18s").await;
    let process = sending(&fixture, &["a"]).await;
    // The checks create the cursor's row again, and may not.
    fixture.owner.batch_execute("REVOKE INSERT ON outbox.cursor FROM relay; DELETE FROM outbox.cursor").await.unwrap();
    line(&process, "cannot look for due work").await;
    fixture.receiver.release();
    eventually(PATIENCE, async || fixture.recorded().await == 1).await;
    assert_eq!(fixture.claims().await, 0);
    fixture.owner.batch_execute("GRANT INSERT ON outbox.cursor TO relay").await.unwrap();
    fixture.add("b").await;
    eventually(PATIENCE * 2, async || fixture.recorded().await == 2).await;
    assert_eq!(sent(&fixture.receiver), ["a", "b"]);
}

/// After the server's clock was set back by an hour, what was written before lies in the future.
pub async fn clock_set_back_while_sending_records_once(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "5s", "3s").await;
    let _process = sending(&fixture, &["a"]).await;
    let Kind { table, begun, .. } = kind;
    let sql = format!(
        "UPDATE {table} SET {begun} = {begun} + interval '1 hour', expires_at = expires_at + interval '1 hour'; \
         UPDATE outbox.cursor SET advanced_at = advanced_at + interval '1 hour', updated_at = updated_at + interval '1 hour'"
    );
    fixture.owner.batch_execute(&sql).await.unwrap();
    fixture.receiver.release();
    eventually(PATIENCE, async || fixture.recorded().await == 1).await;
    fixture.add("b").await;
    eventually(PATIENCE, async || fixture.recorded().await == 2).await;
    assert_eq!((sent(&fixture.receiver), fixture.claims().await), (vec!["a".to_owned(), "b".to_owned()], 0));
}

pub async fn claim_is_renewed_while_record_is_refused(kind: &'static Kind) {
    let fixture = Fixture::new(kind, DEADLINE, "600ms").await;
    fixture.refuse("a", "53100").await;
    fixture.add("a").await;
    let process = fixture.replica("first");
    let _second = fixture.replica("second");
    let Kind { table, begun, .. } = kind;
    let old = format!("SELECT count(*) FROM {table} WHERE now() - {begun} > $1::float8 * interval '1 s'");
    let seconds = kind.lease.as_secs_f64() * 2.0 + 1.0;
    let is_old = async || fixture.owner.query_one(&old, &[&seconds]).await.unwrap().get::<_, i64>(0) == 1;
    eventually(PATIENCE * 4, is_old).await;
    assert_eq!(sent(&fixture.receiver), ["a"], "{}", process.log());
    fixture.allow().await;
    eventually(PATIENCE * 3, async || fixture.recorded().await == 1).await;
    assert_eq!((sent(&fixture.receiver), fixture.claims().await), (vec!["a".to_owned()], 0));
}

pub async fn refused_record_holds_up_no_other(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "5s", "3s").await;
    fixture.refuse("refused", "P0001").await;
    let _process = sending(&fixture, &["refused", "a", "b"]).await;
    fixture.receiver.release();
    eventually(PATIENCE, async || fixture.recorded().await == 2).await;
    fixture.add("c").await;
    eventually(PATIENCE, async || fixture.recorded().await == 3).await;
    fixture.allow().await;
    eventually(PATIENCE * 2, async || fixture.recorded().await == 4).await;
}

/// How long that takes is five minutes, or 25 times as long as the deadline's lock kill.
#[tokio::test(flavor = "multi_thread")]
async fn action_whose_record_is_refused_for_good_is_reported_and_given_up() {
    let fixture = Fixture::new(&super::ACTIONS, "600ms", "360ms").await;
    fixture.refuse("refused", "42501").await;
    fixture.add("refused").await;
    let process = fixture.replica("first");
    let status = "SELECT count(*) FROM outbox.cursor_status \
                  WHERE last_error ->> 'code' = 'postgres_42501' AND last_error ->> 'message' LIKE '%cannot be recorded%'";
    eventually(PATIENCE, async || fixture.count(status).await == 1).await;
    let given_up =
        "cannot record the outcome of an action: on_interrupted of its schedule decides when its claim expires";
    eventually(PATIENCE * 8, async || process.log().contains(given_up)).await;
    fixture.allow().await;
    eventually(PATIENCE * 3, async || fixture.recorded().await == 1).await;
    assert_eq!(fixture.claims().await, 0);
}

pub async fn shutdown_records_outcome_once_possible(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "5s", "3s").await;
    fixture.refuse("a", "53100").await;
    let mut process = sending(&fixture, &["a"]).await;
    process.signal(Signal::TERM);
    line(&process, "draining: running turns end, no new one begins").await;
    fixture.receiver.release();
    line(&process, "cannot record outcomes yet; retrying").await;
    fixture.allow().await;
    let code = tokio::time::timeout(PATIENCE * 3, process.wait()).await.unwrap();
    assert_eq!((code, fixture.recorded().await, fixture.claims().await), (Some(0), 1, 0), "{}", process.log());
}

pub async fn shutdown_with_unrecorded_outcome_exits_1(kind: &'static Kind) {
    let fixture = Fixture::new(kind, DEADLINE, "600ms").await;
    fixture.refuse("a", "53100").await;
    let mut process = sending(&fixture, &["a"]).await;
    process.signal(Signal::TERM);
    fixture.receiver.release();
    let code = tokio::time::timeout(PATIENCE * 3, process.wait()).await.unwrap();
    assert_eq!((code, fixture.recorded().await), (Some(1), 0), "{}", process.log());
    let unrecorded = |line: &serde_json::Value| line["cursor"] == "jobs" && line["outcomes"] == 1;
    assert!(lines(&process).iter().any(unrecorded), "{}", process.log());
}
