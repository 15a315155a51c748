//! The statements of redriven rows: when there is something to do, and how a redrive ends that nothing sends.
//!
//! Pure. `$1` is the relay's name everywhere. Promise: a redrive ends. Its row is sent, or is refused again; or its letter says that the
//! row is gone, or that the outcome is unknown. A letter is of one due time: the row, put off since, is another message.

use super::due::Due;

impl Due {
    /// Whether a claim has to see to a redrive: a claim that is sending, or that waits, sees to its own, unless its row is gone.
    pub(super) fn redrives(&self) -> String {
        format!(
            "EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = $1::text AND d.state = 'redriving' \
             AND NOT EXISTS (SELECT FROM outbox.claim AS r WHERE r.relay = $1::text AND r.state NOT IN ('dead', 'unknown') \
             AND {of_letter} AND NOT ({stray})))",
            of_letter = is_of_letter("r"),
            stray = self.is_stray("r"),
        )
    }

    /// The claim is in nothing's hands, and no claim will take it again: its row was deleted, marked or put off. Asked row by row, so that
    /// no plan reads the whole table.
    fn is_stray(&self, alias: &str) -> String {
        format!(
            "NOT {alias}.marked AND ({alias}.state = 'waiting' OR {alias}.state = 'claimed' AND {alias}.expires_at <= pg_catalog.now()) \
             AND CASE WHEN pg_catalog.cardinality({alias}.key) = {columns} THEN NOT EXISTS (SELECT FROM {table} AS t \
             WHERE {named} AND {instant} = {alias}.due_at AND {unsent}{fits}) ELSE true END",
            columns = self.config.key.len(),
            table = self.table(),
            named = self.named("t", |n| format!("{alias}.key[{}]", n + 1)),
            instant = self.instant("t"),
            unsent = self.unsent("t", "$1::text"),
            fits = self.fits_by_key(),
        )
    }

    /// Under [`super::Taking::MarkFirst`], lets rows be claimed, and marked, that were dead-lettered unmarked and are to be sent again.
    #[must_use]
    pub fn reclaim_sql() -> String {
        format!(
            "UPDATE outbox.claim AS w SET state = 'waiting', not_before = pg_catalog.now(), \
             updated_at = pg_catalog.now() - interval '1 day' \
             WHERE w.relay = $1::text AND w.state = 'dead' AND NOT w.marked AND {}",
            is_redriven("w")
        )
    }

    /// Ends the claims of redriven rows that are gone: [`Self::gone_sql`] then ends their redrives.
    #[must_use]
    pub fn stray_sql(&self) -> String {
        format!(
            "DELETE FROM outbox.claim AS c WHERE c.relay = $1::text AND {} AND {}",
            is_redriven("c"),
            self.is_stray("c")
        )
    }

    /// Ends redrives whose outcome is unknown, because a replica ended while it had the row: under `at_most_once` it is not sent once more.
    /// Columns: the ids.
    #[must_use]
    pub fn unknown_sql() -> String {
        format!(
            "UPDATE outbox.dead_letter AS d SET state = 'redriven', resolved_at = pg_catalog.clock_timestamp(), \
             resolved_by = c.claimed_by, error = COALESCE(c.error, d.error) FROM outbox.claim AS c \
             WHERE d.cursor = $1::text AND d.state = 'redriving' AND c.relay = $1::text AND c.state = 'unknown' \
             AND {} RETURNING d.message_id",
            is_of_letter("c")
        )
    }

    /// Dead letters that were to be sent again and whose row is gone or not due any more: nothing sends them. Columns: the ids.
    #[must_use]
    pub fn gone_sql() -> String {
        format!(
            "UPDATE outbox.dead_letter AS d SET state = 'dead', requested_at = NULL, requested_by = NULL, \
             error = pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp(), 'class', 'poison', 'code', 'row_gone', \
             'message', 'The row was deleted, marked or put off since: there is nothing to send again', \
             'hint', 'Discard the letter, or make the row due again.') \
             WHERE d.cursor = $1::text AND d.state = 'redriving' AND NOT EXISTS (SELECT FROM outbox.claim AS c \
             WHERE c.relay = $1::text AND {}) RETURNING d.message_id",
            is_of_letter("c")
        )
    }
}

/// The claim is of the row that the letter `d` is of, due as it was then. A claim and its letter have their instant from one reading.
fn is_of_letter(claim: &str) -> String {
    format!("{claim}.due_at = d.created_at AND {} = d.message_id", message_id(claim))
}

/// An operator wants the letter of the claim's row sent again.
pub(super) fn is_redriven(claim: &str) -> String {
    format!(
        "EXISTS (SELECT FROM outbox.dead_letter AS d WHERE d.cursor = $1::text AND d.state = 'redriving' AND {})",
        is_of_letter(claim)
    )
}

/// A claim's key as [`super::Key::message_id`] writes it.
fn message_id(alias: &str) -> String {
    format!(
        "CASE pg_catalog.array_length({alias}.key, 1) WHEN 1 THEN {alias}.key[1] ELSE (SELECT pg_catalog.string_agg(\
         pg_catalog.replace(pg_catalog.replace(part, '~', '~0'), '/', '~1'), '/' ORDER BY n) \
         FROM pg_catalog.unnest({alias}.key) WITH ORDINALITY AS p (part, n)) END"
    )
}
