//! One queue, three kinds of work: the same cases against due work (marked later, and marked first), requests and actions.

use crate::support::receiver::Receiver;

mod canceled;
mod interrupted;
mod kinds;
mod recorded;
mod stalled;

use kinds::{ACTIONS, Kind, MARKED_FIRST, PENDING, REQUESTS};

/// Makes a test of each case for each kind of work.
macro_rules! for_each_kind {
    ($($file:ident::$case:ident),* $(,)?) => {
        mod pending { $(#[tokio::test(flavor = "multi_thread")] async fn $case() { super::$file::$case(&super::PENDING).await; })* }
        mod marked_first { $(#[tokio::test(flavor = "multi_thread")] async fn $case() { super::$file::$case(&super::MARKED_FIRST).await; })* }
        mod requests { $(#[tokio::test(flavor = "multi_thread")] async fn $case() { super::$file::$case(&super::REQUESTS).await; })* }
        mod actions { $(#[tokio::test(flavor = "multi_thread")] async fn $case() { super::$file::$case(&super::ACTIONS).await; })* }
    };
}

for_each_kind!(
    // Guarantee: pending.runner
    interrupted::kill_while_claiming_sends_once,
    // Guarantee: pending.runner
    interrupted::kill_while_sending,
    // Guarantee: pending.runner
    interrupted::kill_before_the_record,
    // Guarantee: pending.runner
    interrupted::lost_claim_is_not_recorded,
    interrupted::run_once_waits_for_another_replica,
    recorded::clock_set_back_while_sending_records_once,
    // Guarantee: pending.runner
    recorded::outcome_is_recorded_while_checks_fail,
    // Guarantee: pending.runner
    recorded::claim_is_renewed_while_record_is_refused,
    // Guarantee: pending.runner
    recorded::refused_record_holds_up_no_other,
    // Guarantee: pending.runner
    recorded::shutdown_records_outcome_once_possible,
    recorded::shutdown_with_unrecorded_outcome_exits_1,
);

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn slow_records_of_pending_rows_are_made_in_parts() {
    recorded::slow_records_are_made_in_parts(&PENDING).await;
}

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn slow_records_of_requests_are_made_in_parts() {
    recorded::slow_records_are_made_in_parts(&REQUESTS).await;
}

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn slow_record_of_a_pending_row_holds_up_no_other() {
    recorded::slow_record_holds_up_no_other(&PENDING).await;
}

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn slow_record_of_a_request_holds_up_no_other() {
    recorded::slow_record_holds_up_no_other(&REQUESTS).await;
}

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn row_marked_first_is_given_back_when_its_claim_was_not_answered() {
    stalled::unanswered_claim_is_given_back(&MARKED_FIRST).await;
}

// Guarantee: pending.runner
#[tokio::test(flavor = "multi_thread")]
async fn request_is_given_back_when_its_claim_was_not_answered() {
    stalled::unanswered_claim_is_given_back(&REQUESTS).await;
}

/// The jobs that the receiver has been sent, in order.
fn sent(receiver: &Receiver) -> Vec<String> {
    receiver.requests().into_iter().map(|request| request.body).collect()
}
