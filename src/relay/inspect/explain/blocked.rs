//! A cursor that a transaction or a session blocks, or that no replica takes.

use super::{Why, age, answer, left};
use crate::relay::inspect::facts::{CursorFacts, Holder};

/// So many blocking transactions are listed with the command that ends them.
const HOLDERS: usize = 5;

/// A row may be older than the transaction before which it must wait by the latency window, and by the time between the two
/// measurements.
const TOLERANCE: f64 = 1.0;

/// The transactions that the oldest waiting row waits for: a younger one, however many there are, holds nothing up.
fn blocking(facts: &CursorFacts) -> Vec<&Holder> {
    let oldest = facts.waiting.map_or(0.0, |waiting| waiting.lag_seconds);
    let holds = |holder: &&Holder| holder.age_seconds.is_none_or(|age| age + TOLERANCE >= oldest);
    facts.holders.iter().filter(holds).collect()
}

pub(super) fn held(facts: &CursorFacts) -> Why {
    if let Some(standby) = facts.holders.iter().find(|holder| holder.standby) {
        return unconfirmed(facts, standby);
    }
    let holders = blocking(facts);
    // It was there before the oldest row that waits for it.
    let least = facts.waiting.map(|waiting| format!("for at least {:.0} s", waiting.lag_seconds));
    let open = |known: Option<f64>| match (known, &least) {
        (None, Some(least)) => least.clone(),
        _ => age(known),
    };
    let who = |holder: &Holder| match (holder.pid, &holder.gid) {
        (Some(pid), _) => {
            let application = holder.application.as_deref().filter(|text| !text.is_empty());
            format!("pid {pid} ({}), open {}", application.unwrap_or("no application name"), open(holder.age_seconds))
        }
        (None, Some(gid)) => format!("the prepared transaction {gid}"),
        (None, None) => "a prepared transaction".to_owned(),
    };
    let first = holders.first().map_or_else(|| "a transaction that is gone by now".to_owned(), |first| who(first));
    let more = holders.len().saturating_sub(1);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let mut why = answer(
        "held",
        false,
        format!(
            "{} is held by {first}{more}: a row may still come that belongs before those that wait{}",
            facts.name,
            left(facts)
        ),
    );
    match holders.iter().filter(|holder| holder.pid.is_some()).count() {
        0 => {}
        1 => {
            why = why.then(
                "Let its owner end the transaction. To end its session, which rolls its work back, as a superuser or a member \
                 of pg_signal_backend:",
            );
        }
        _ => {
            why = why.then(
                "Let their owners end these transactions, the oldest first. To end a session, which rolls its work back, as a \
                 superuser or a member of pg_signal_backend:",
            );
        }
    }
    if holders.is_empty() {
        why =
            why.then("It may go on at any moment; look again:").then(format!("outbox-relay cursor why {}", facts.name));
    }
    for holder in holders.into_iter().take(HOLDERS) {
        why = match (holder.pid, &holder.gid) {
            (Some(pid), _) => why.then(format!("SELECT pg_terminate_backend({pid});")),
            (None, Some(gid)) => ended_by_hand(why, gid),
            (None, None) => why.then("SELECT gid, prepared, owner FROM pg_prepared_xacts ORDER BY prepared;"),
        };
    }
    why
}

/// How a prepared transaction ends: one of the two, and never both in turn.
fn ended_by_hand(why: Why, gid: &str) -> Why {
    let gid = gid.replace('\'', "''");
    why.then(
        "A prepared transaction ends by hand, and its owner decides how. To keep what it wrote; or, below, to undo it:",
    )
    .then(format!("COMMIT PREPARED '{gid}';"))
    .or(format!("ROLLBACK PREPARED '{gid}';"))
}

/// Rows wait for a standby, as `durability` has it.
fn unconfirmed(facts: &CursorFacts, standby: &Holder) -> Why {
    let (name, left) = (&facts.name, left(facts));
    let who = match (standby.pid, standby.application.as_deref().filter(|text| !text.is_empty())) {
        (Some(pid), application) => {
            format!(
                "standby {} (pid {pid}) has not yet written their commits to its disk",
                application.unwrap_or("without a name")
            )
        }
        (None, _) => "too few standbys are connected, or this role may not see how far they are".to_owned(),
    };
    answer("held", false, format!("{name} is held by its durability: {who}{left}"))
        .then("How far the standbys are, as a role with pg_read_all_stats (the relay's role needs it, too):")
        .then("SELECT pid, application_name, state, sent_lsn, flush_lsn, flush_lag FROM pg_stat_replication;")
        .or("durability = \"local\" delivers without waiting; a failover can then lose rows that were delivered.")
}

pub(super) fn stuck(facts: &CursorFacts) -> Why {
    let name = &facts.name;
    if let Some(lock) = facts.lock.as_ref().filter(|lock| lock.waits_for_standby) {
        let sentence = format!(
            "the commit of {name} by {} (pid {}) waits for a synchronous standby of the server {}{}",
            lock.by,
            lock.pid,
            age(lock.age_seconds),
            left(facts)
        );
        return answer("lock_held", false, sentence)
            .then("Nothing is repeated: the commit is there, and is answered when the standby has it. Which standbys there are:")
            .then("SELECT pid, application_name, state, sync_state, flush_lsn FROM pg_stat_replication;")
            .then("Bring the standby back, or take it from the setting:")
            .then("SHOW synchronous_standby_names;");
    }
    if let Some(gid) = &facts.prepared_lock {
        let sentence = format!("the lock of {name} is held by the prepared transaction {gid}{}", left(facts));
        return ended_by_hand(answer("lock_held", false, sentence), gid);
    }
    if let Some(lock) = &facts.lock {
        let sentence = format!(
            "the lock of {name} is held by {} (pid {}) {}, and it does not advance{}",
            lock.by,
            lock.pid,
            age(lock.age_seconds),
            left(facts)
        );
        return answer("lock_held", false, sentence)
            .then(
                "If a replica has it: a turn that waits for its sink ends at [relay.turn] deadline, and a frozen replica loses the \
                 lock after 12/5 of that. To end any other session, as a superuser or a member of pg_signal_backend:",
            )
            .then(format!("SELECT pg_terminate_backend({});", lock.pid));
    }
    answer(
        "not_taken",
        false,
        format!("replicas run ({}), and none of them takes {name}{}", facts.replicas.join(", "), left(facts)),
    )
    .then("See their logs: is this relay in their configuration (`run --relay`), did it pass its checks?")
    .then("outbox-relay check")
}
