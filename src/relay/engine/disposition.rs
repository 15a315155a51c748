//! The table of failures: what a failure means for the message, for the relay and for the circuit of its sink.
//!
//! It is the one place that decides this, for streams and queues alike; what they differ in is in [`Sender`]. Who calls it
//! carries out what it says. Errors of the database are another table: [`crate::database::sqlstate`].

use crate::relay::{OnPoison, OnUnknown};
use crate::sink::{Class, Failure, Subject};

mod sender;
mod wait;

pub(in crate::relay) use sender::Sender;
pub(in crate::relay) use wait::{Wait, pause};

/// After wrong credentials a job waits as after at least so many attempts, and after an outage as after at most so many: a
/// relay of actions does not back off as a whole.
const OF_ALL: i32 = 4;

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) struct Disposition {
    pub(in crate::relay) message: ForMessage,
    pub(in crate::relay) relay: ForRelay,
    pub(in crate::relay) circuit: ForCircuit,
}

/// What a failure means for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum ForMessage {
    /// It stays first, and no other passes it.
    Blocks,
    /// It is one of several: they are sent one at a time, until the one to blame stands alone.
    Isolated,
    /// It waits for its next attempt, and others pass it.
    Waits(Wait),
    /// It has failed for good: a dead letter, or a failed action.
    Fails,
    /// It is listed with an unknown outcome, for a person to decide.
    Unknown,
}

/// What a failure means for the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum ForRelay {
    /// Nothing.
    Unaffected,
    /// The receiver works as it should: a failure that was reported before is cleared.
    Recovers,
    /// It continues. Once several attempts in a row have failed, that is reported.
    Continues,
    /// It backs off, longer each time.
    BacksOff,
    /// It continues, reports the failure at once, and makes its checks again when that is due.
    Rechecks,
    /// It halts until an operator resumes it.
    Halts,
}

/// What a failure means for the circuit of the sink. A queue counts outages itself, instead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum ForCircuit {
    /// Nothing.
    Unchanged,
    /// It is an outage: several in a row open the circuit, and keep it open.
    Outage,
    /// The receiver is available: the circuit closes.
    Closes,
}

/// What follows from a failure. Pure: the same failure of the same sender always means the same.
pub(in crate::relay) fn disposition(sender: Sender, failure: &Failure) -> Disposition {
    let (message, relay, circuit) = match sender {
        Sender::Stream { on_poison, several, passed } => stream(on_poison, several, passed, failure),
        Sender::Redrive { passed } => redrive(passed, failure),
        Sender::Pending { on_poison, several, passed, once, attempts } => {
            let message = pending_message(on_poison, several, passed, attempts, failure);
            let (relay, circuit) = pending_relay(message, on_poison, once, failure);
            (message, relay, circuit)
        }
        Sender::Request { on_poison, on_unknown, ambiguous_before, once, attempts } => {
            let message = request_message(on_poison, on_unknown, ambiguous_before, attempts, failure);
            let (relay, circuit) = request_relay(message, once, failure);
            (message, relay, circuit)
        }
        Sender::Action { retries, interrupted, attempts } => action(retries, interrupted, attempts, failure),
    };
    Disposition { message, relay, circuit }
}

/// What follows for the relay of a stream, and for the circuit, from a failure at which it stops: whatever the policy for
/// poison messages is, it has not helped.
pub(in crate::relay) fn at_stop(failure: &Failure) -> Disposition {
    disposition(Sender::Stream { on_poison: OnPoison::Halt, several: false, passed: false }, failure)
}

type Effects = (ForMessage, ForRelay, ForCircuit);

const HALTS: (ForRelay, ForCircuit) = (ForRelay::Halts, ForCircuit::Closes);
const RECOVERS: (ForRelay, ForCircuit) = (ForRelay::Recovers, ForCircuit::Closes);
const CONTINUES: (ForRelay, ForCircuit) = (ForRelay::Continues, ForCircuit::Closes);
const BACKS_OFF: (ForRelay, ForCircuit) = (ForRelay::BacksOff, ForCircuit::Outage);

fn stream(on_poison: OnPoison, several: bool, passed: bool, failure: &Failure) -> Effects {
    let (relay, circuit) = match (failure.class, on_poison) {
        _ if passed && failure.ambiguous => return passed_unknown(failure),
        (Class::Retry, _) => return (ForMessage::Blocks, ForRelay::BacksOff, of_receiver(failure)),
        (Class::Poison, _) if several => return (ForMessage::Isolated, ForRelay::Unaffected, ForCircuit::Unchanged),
        (Class::Poison, OnPoison::DeadLetter | OnPoison::ParkKey) => {
            return (ForMessage::Fails, ForRelay::Recovers, ForCircuit::Closes);
        }
        (Class::Poison, OnPoison::Halt) | (Class::Fatal, _) => HALTS,
    };
    (ForMessage::Blocks, relay, circuit)
}

/// What may have arrived can be neither skipped as a dead letter nor sent again; the stream waits for the receiver all the same.
fn passed_unknown(failure: &Failure) -> Effects {
    match failure.class {
        Class::Retry | Class::Poison => (ForMessage::Unknown, ForRelay::BacksOff, of_receiver(failure)),
        Class::Fatal => (ForMessage::Unknown, HALTS.0, HALTS.1),
    }
}

fn redrive(passed: bool, failure: &Failure) -> Effects {
    match failure.class {
        _ if passed && failure.ambiguous => passed_unknown(failure),
        // It stays a dead letter.
        Class::Poison => (ForMessage::Fails, ForRelay::Unaffected, ForCircuit::Unchanged),
        Class::Retry => (ForMessage::Blocks, ForRelay::BacksOff, of_receiver(failure)),
        Class::Fatal => (ForMessage::Blocks, HALTS.0, HALTS.1),
    }
}

/// What a failure that will pass says of the receiver.
fn of_receiver(failure: &Failure) -> ForCircuit {
    match failure.subject {
        Subject::Receiver => ForCircuit::Outage,
        Subject::Message
        | Subject::TooMany
        | Subject::KeyInUse
        | Subject::Missing
        | Subject::TooSlow
        | Subject::Elsewhere => ForCircuit::Closes,
    }
}

fn pending_message(on_poison: OnPoison, several: bool, passed: bool, attempts: i32, failure: &Failure) -> ForMessage {
    match (failure.class, on_poison) {
        (Class::Poison, _) if several => ForMessage::Isolated,
        _ if passed && failure.ambiguous => ForMessage::Unknown,
        (Class::Poison, OnPoison::DeadLetter | OnPoison::ParkKey) => ForMessage::Fails,
        (Class::Fatal, _) => ForMessage::Waits(Wait::AT_ONCE),
        // Its key is in use: others get through.
        (Class::Retry, _) if !failure.ambiguous && failure.subject != Subject::KeyInUse => {
            ForMessage::Waits(Wait { counts: false, ..Wait::after(0) })
        }
        (Class::Retry, _) | (Class::Poison, OnPoison::Halt) => ForMessage::Waits(Wait::after(attempts)),
    }
}

fn pending_relay(message: ForMessage, on_poison: OnPoison, once: bool, failure: &Failure) -> (ForRelay, ForCircuit) {
    match (failure.class, on_poison) {
        _ if message == ForMessage::Isolated => (ForRelay::Unaffected, ForCircuit::Unchanged),
        (Class::Poison, OnPoison::Halt) | (Class::Fatal, _) => HALTS,
        // It has answered: whatever stood between is over.
        (Class::Poison, OnPoison::DeadLetter | OnPoison::ParkKey) => RECOVERS,
        // Each attempt that is not answered may be received twice; under at_most_once it costs a row.
        (Class::Retry, _) if message == ForMessage::Unknown => BACKS_OFF,
        (Class::Retry, _) if !failure.ambiguous && failure.subject != Subject::KeyInUse => BACKS_OFF,
        (Class::Retry, _) if failure.is_outage() && !once => BACKS_OFF,
        (Class::Retry, _) => CONTINUES,
    }
}

fn request_message(
    on_poison: OnPoison,
    on_unknown: OnUnknown,
    ambiguous_before: bool,
    attempts: i32,
    failure: &Failure,
) -> ForMessage {
    let unsent = failure.class == Class::Retry && !failure.ambiguous;
    let waits = Wait {
        // At least one, so that a `run --once` attempts it once.
        counts: !unsent || attempts == 0,
        outlasts: failure.ambiguous && on_unknown == OnUnknown::Ask,
        ..Wait::after(if unsent { 0 } else { attempts })
    };
    match (failure.class, on_poison, on_unknown) {
        _ if failure.ambiguous && on_unknown == OnUnknown::DeadLetter => ForMessage::Unknown,
        (Class::Retry, _, _) => ForMessage::Waits(waits),
        // Its key is in use: the attempt before is still at work there.
        (Class::Poison, _, OnUnknown::Resend | OnUnknown::Ask)
            if ambiguous_before && failure.subject == Subject::KeyInUse =>
        {
            ForMessage::Waits(waits)
        }
        (Class::Poison, OnPoison::DeadLetter | OnPoison::ParkKey, _) if ambiguous_before => ForMessage::Unknown,
        (Class::Poison, OnPoison::DeadLetter | OnPoison::ParkKey, _) => ForMessage::Fails,
        // The attempt that halts the relay counts for nothing: it is made again when the relay is resumed.
        (Class::Poison, OnPoison::Halt, _) | (Class::Fatal, _, _) => ForMessage::Blocks,
    }
}

fn request_relay(message: ForMessage, once: bool, failure: &Failure) -> (ForRelay, ForCircuit) {
    let asks_for_a_pause = failure.retry_after.is_some();
    match message {
        ForMessage::Blocks => HALTS,
        // A `run --once` attempts each request once: the next run begins with the same ones.
        ForMessage::Waits(_) if once && failure.ambiguous && !asks_for_a_pause => CONTINUES,
        // While the receiver does not answer, each attempt costs a request its certainty.
        ForMessage::Waits(_) | ForMessage::Fails | ForMessage::Unknown if failure.is_outage() || asks_for_a_pause => {
            BACKS_OFF
        }
        ForMessage::Fails | ForMessage::Unknown => RECOVERS,
        ForMessage::Waits(_) => CONTINUES,
        // No request is sent with others.
        ForMessage::Isolated => (ForRelay::Unaffected, ForCircuit::Unchanged),
    }
}

fn action(retries: bool, interrupted: bool, attempts: i32, failure: &Failure) -> Effects {
    let after = match failure.class {
        // Another attempt could do it twice.
        _ if failure.ambiguous && !retries => None,
        Class::Poison => None,
        // Wrong credentials are fixed for all actions at once: none of them is to blame, and none stops another tenant's.
        Class::Fatal => Some(attempts.max(OF_ALL)),
        Class::Retry if failure.ambiguous => Some(attempts),
        Class::Retry => Some(attempts.min(OF_ALL)),
    };
    let message = match after {
        None => ForMessage::Fails,
        // What was interrupted was no attempt.
        Some(_) if interrupted => ForMessage::Waits(Wait::AT_ONCE),
        Some(attempts) => ForMessage::Waits(Wait::after(attempts)),
    };
    let relay = match failure.class {
        Class::Fatal => ForRelay::Rechecks,
        Class::Retry | Class::Poison if interrupted => ForRelay::Unaffected,
        Class::Retry | Class::Poison => ForRelay::Continues,
    };
    (message, relay, ForCircuit::Unchanged)
}

impl ForMessage {
    /// How it waits if it is neither ended nor unknown; what blocks the relay waits with it.
    pub(in crate::relay) const fn wait(self) -> Option<Wait> {
        match self {
            Self::Fails | Self::Unknown => None,
            Self::Waits(wait) => Some(wait),
            Self::Blocks | Self::Isolated => Some(Wait::AT_ONCE),
        }
    }
}

#[cfg(test)]
mod tests;
