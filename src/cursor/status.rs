//! What a relay has to say about its cursor: `outbox.cursor_status`. Written outside the transaction of a turn that
//! publishes, so that nobody who locks it can hold such a turn up.

use std::time::Duration;

use tokio_postgres::Client;

use crate::database::{Error, Session};
use crate::position::Timestamp;

/// Marks the fingerprint of a halt that a check wrote: it ends when the check passes.
pub const CHECK: &str = "check:";

/// Codes of halts that wait for an operator, whatever a replica's configuration. What they follow from is recorded with them, or one
/// replica alone may have seen it: another that went on would not halt at it.
const DECISIONS: [&str; 6] =
    ["cursor_deleted", "horizon_rule_changed", "late_row", "order_changed", "position_in_future", "table_subscribed"];

/// Whether halts with this code wait for an operator, whatever the configuration.
pub(super) fn is_decision(code: &str) -> bool {
    DECISIONS.contains(&code)
}

/// Which replicas a halt keeps from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaltScope {
    /// As it is stored: the fingerprints of the configurations that have halted, or [`CHECK`] and one.
    stored: String,
    /// An operator must decide: all of them.
    for_all: bool,
}

impl HaltScope {
    pub(super) fn new(stored: Option<String>, code: Option<&str>) -> Self {
        let stored = stored.unwrap_or_default();
        let for_all = !stored.starts_with(CHECK) && code.is_some_and(is_decision);
        Self { stored, for_all }
    }

    /// Whether a replica with this fingerprint stands still. One with another configuration goes on, because that may be what was to
    /// be corrected; if it halts, too, both are named from then on, so that they do not try in turns.
    #[must_use]
    pub fn counts_for(&self, fingerprint: &str) -> bool {
        self.for_all || self.stored.split(' ').any(|halted| halted == fingerprint)
    }

    /// Whether it waits for an operator, whatever the configuration.
    #[must_use]
    pub const fn is_for_all(&self) -> bool {
        self.for_all
    }

    /// Whether a check wrote it, which another replica may pass.
    #[must_use]
    pub fn is_check(&self) -> bool {
        self.stored.starts_with(CHECK)
    }

    /// As [`clear`] wants it.
    #[must_use]
    pub fn stored(&self) -> &str {
        &self.stored
    }
}

/// An error as operators see it in `status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReport<'a> {
    /// `retry`, `poison` or `fatal`.
    pub class: &'a str,
    /// A short stable word.
    pub code: &'a str,
    /// What happened.
    pub message: &'a str,
    /// What to do.
    pub hint: &'a str,
    /// The message concerned, if one is.
    pub message_id: Option<&'a str>,
}

const REPORT: &str = include_str!("sql/status_report.sql");

/// Records an error.
///
/// With `halted`, the fingerprint of the configuration under which the cursor now stands still, until an operator ends the
/// halt, the configuration is another or, of a check's, the check passes. Configurations that have halted already go on standing
/// still, and an operator's decision stays what is to be decided. The same halt again keeps its time; a check's leaves one alone that a turn has found; and an error that does not halt
/// leaves any halt alone.
///
/// `circuit_open` says that the sink's circuit is open, since the first such report, or that it is closed. A report that
/// says nothing of it leaves an open circuit open and, unless it halts, its error and the time of its last try as well.
///
/// The error's `since` is the time of the first report since the cursor was last well.
///
/// # Errors
/// The database's.
pub async fn report(
    session: &Client,
    cursor: &str,
    error: &ErrorReport<'_>,
    halted: Option<&str>,
    circuit_open: Option<bool>,
) -> Result<(), Error> {
    let state = if halted.is_some() { "halted" } else { "backing_off" };
    // A server's message may hold what text cannot.
    let message = error.message.replace('\0', "\u{fffd}");
    session
        .execute(
            REPORT,
            &[
                &cursor,
                &state,
                &halted.is_some(),
                &halted,
                &error.message_id,
                &error.class,
                &error.code,
                &message,
                &error.hint,
                &circuit_open,
                &DECISIONS.as_slice(),
            ],
        )
        .await?;
    Ok(())
}

/// The error as the JSON object of `last_error`, without its time.
pub(crate) fn json(error: &ErrorReport<'_>) -> String {
    // What PostgreSQL's text cannot hold, its jsonb refuses.
    let clean = |text: &str| text.replace('\0', "\u{fffd}");
    serde_json::json!({
        "class": error.class, "code": error.code, "message": clean(error.message), "hint": clean(error.hint),
    })
    .to_string()
}

/// What a cursor is halted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// The message concerned, if one is.
    pub message_id: Option<String>,
    /// `poison` or `fatal`.
    pub class: String,
    /// A short stable word.
    pub code: String,
    /// What happened.
    pub message: String,
    /// Which replicas it concerns.
    pub scope: HaltScope,
    /// When it was last reported.
    pub reported_at: Timestamp,
}

/// What the cursor is halted by, if it is halted.
///
/// # Errors
/// The database's.
pub async fn halt(session: &Session, cursor: &str) -> Result<Option<Halt>, Error> {
    let sql = include_str!("sql/status_halt.sql");
    let Some(row) = session.query_opt(sql, &[&cursor]).await? else { return Ok(None) };
    let code: String = row.try_get(2)?;
    Ok(Some(Halt {
        message_id: row.try_get(0)?,
        class: row.try_get(1)?,
        message: row.try_get(3)?,
        scope: HaltScope::new(row.try_get(4)?, Some(&code)),
        reported_at: row.try_get(5)?,
        code,
    }))
}

/// Ends the failure that was last reported, by any replica, of a relay for which nothing waits: no try will ever succeed it. A
/// row that was marked before it was sent, and waits for its next try, is known to its claim alone. A failure that halts stays, and a fatal one: the next job would meet it, too; and one that is younger than `linger`. False when there was none.
///
/// # Errors
/// The database's.
pub async fn rest(session: &Session, cursor: &str, linger: Duration) -> Result<bool, Error> {
    let changed = session.execute(include_str!("sql/status_rest.sql"), &[&cursor, &linger.as_secs_f64()]).await?;
    Ok(changed > 0)
}

/// The caller that closes a circuit learns it, whatever this process has seen of it: of an outage, one replica tells the end.
const CLEAR: &str = include_str!("sql/status_clear.sql");

/// Records that the cursor is well again: no error, no open circuit. A halt stays, unless it is this one ([`HaltScope::stored`]),
/// or one of a check: another process's, as the caller's own has passed. Without one, so does a halt that is older than five minutes and
/// not an operator's to decide: the caller, which it does not stop, has gone on, and the replica that halted may be gone for good. True
/// when this has closed a circuit.
///
/// # Errors
/// The database's.
pub async fn clear(session: &Session, cursor: &str, halt: Option<&str>) -> Result<bool, Error> {
    let row = session.query_opt(CLEAR, &[&cursor, &halt, &DECISIONS.as_slice()]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}
