//! `outbox.cancel_actions` of an application, and what waits beside and after the actions that it cancels.

use super::kinds::{DEADLINE, Fixture};
use super::{ACTIONS, sent};
use crate::support::{PATIENCE, eventually};

/// The action of this schedule once more, as if it had not been done.
async fn again(fixture: &Fixture, schedule: &str, status: &str) {
    let sql = "UPDATE outbox.action SET status = $2, try_at = clock_timestamp(), finished_at = NULL, result = NULL WHERE schedule = $1";
    assert_eq!(fixture.owner.execute(sql, &[&schedule, &status]).await.unwrap(), 1);
}

/// A fixture on which the action of schedule `a` was done, and whose replica has ended.
async fn done() -> Fixture {
    let fixture = Fixture::new(&ACTIONS, DEADLINE, "600ms").await;
    fixture.add("a").await;
    let mut process = fixture.replica("first");
    eventually(PATIENCE * 2, async || fixture.recorded().await == 1).await;
    process.signal(rustix::process::Signal::TERM);
    process.wait().await;
    fixture
}

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn open_cancel_of_an_action_holds_up_no_other() {
    let fixture = done().await;
    again(&fixture, "a", "due").await;
    let application = fixture.database.connect("postgres").await;
    application.batch_execute("BEGIN; SELECT outbox.cancel_actions('a')").await.unwrap();
    fixture.add("b").await;
    let _process = fixture.replica("second");
    eventually(PATIENCE * 2, async || sent(&fixture.receiver) == ["a", "b"]).await;
    application.batch_execute("ROLLBACK").await.unwrap();
    eventually(PATIENCE, async || sent(&fixture.receiver) == ["a", "b", "a"]).await;
}

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn queued_action_begins_once_nothing_is_before_it() {
    let fixture = done().await;
    again(&fixture, "a", "queued").await;
    let _process = fixture.replica("second");
    eventually(PATIENCE * 2, async || sent(&fixture.receiver) == ["a", "a"]).await;
    eventually(PATIENCE, async || fixture.recorded().await == 1).await;
}
