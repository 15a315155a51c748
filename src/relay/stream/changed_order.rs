//! A table whose rows have another order than when the position was written.
//!
//! Positions are compared by the types of `created_at` and `id`, and by the collation of a text `id`. An `ALTER TABLE` that changes one of
//! them reorders rows: of one instant by their ids (2 before 10, "10" before "2"), or of one second by a coarser `created_at`. Rows that
//! were not delivered yet are then before the position, where no reading finds them. So are those of another column that was given the
//! name, or was configured: of the same type or not, its values are others.
//!
//! So each advance records the order, and where it is another one, the position goes back to the beginning of its second, in a turn
//! of its own, and the relay halts until an operator accepts that. It does not go back where a row must not be sent twice, or where
//! instants may be hours off (another type of `created_at`, or another zone): then the halt says what to compare. Between two
//! readings of the catalog, the snapshot that rows are read with tells that the order is another.

use crate::cursor::{Halting, LockedCursor, RestsOn, Standing};
use crate::position::{Position, Timestamp};
use crate::relay::Guarantee;
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::{report, weaker_rule};
use crate::sink::{Class, Failure};
use crate::source::order::{self, Change};
use crate::source::shape::Shape;

/// No column keeps less of an instant than whole seconds.
const COARSEST: i64 = 1_000_000;

/// What has changed between what a position was compared by and what the table is now. Nothing is before one that is before every row.
fn change(position: Option<&Position>, order: Option<&str>, columns: Option<&[i16]>, shape: &Shape) -> Change {
    if position.is_none() {
        return Change::None;
    }
    let of_types = order.map_or(Change::None, |known| order::change(known, &shape.order));
    let of_columns = columns.map_or(Change::None, |known| order::change_of_columns(known, &shape.order_columns));
    of_types.max(of_columns)
}

/// Whether rows can be on the other side of a position than when it was written.
pub(in crate::relay) fn is_changed(position: Option<&Position>, known: &RestsOn, shape: &Shape) -> bool {
    change(position, known.order.as_deref(), known.columns.as_deref(), shape) != Change::None
}

/// Whether a turn moves this cursor back, because of its order or its rule.
pub(in crate::relay) fn goes_back(standing: &Standing, shape: &Shape) -> bool {
    let Standing { position, order, columns, .. } = standing;
    change(position.as_ref(), order.as_deref(), columns.as_deref(), shape) != Change::None
        || weaker_rule::is_weaker(standing.rule.as_deref(), shape)
}

/// For people: the types, and the columns where those are others.
fn words(order: &str, columns: Option<&[i16]>, others: bool) -> String {
    match columns {
        Some([created_at, id]) if others => format!("{order} of columns {created_at} and {id}"),
        _ => order.to_owned(),
    }
}

/// Moves the position back where that is allowed, records the order, and halts.
pub(in crate::relay) async fn go_back(
    engine: &Engine,
    ready: &PreparedStream,
    cursor: LockedCursor,
) -> Result<TurnOutcome, TurnError> {
    let (shape, name) = (&ready.shape, &ready.config.name);
    let RestsOn { order, columns, .. } = &cursor.rests_on;
    let is_within = change(cursor.position.as_ref(), order.as_deref(), columns.as_deref(), shape) == Change::Within;
    let others = columns.as_ref().is_some_and(|known| *known != shape.order_columns);
    let before = words(order.as_deref().unwrap_or_default(), columns.as_deref(), others);
    let after = words(&shape.order, Some(&shape.order_columns), others);
    let may_go_back = is_within && ready.config.guarantee == Guarantee::AtLeastOnce;
    let micros = cursor.position.as_ref().map(|position| position.created_at.unix_micros()).filter(|_| may_go_back);
    // The ends of time are no instants that could be rounded.
    let back =
        micros.and_then(|micros| micros.div_euclid(COARSEST).checked_mul(COARSEST)).map(Timestamp::from_unix_micros);
    let place = cursor.position.as_ref().map_or_else(|| "the beginning".to_owned(), ToString::to_string);
    let changed = format!(
        "The rows of {} have another order: positions were compared by {before}, and are now by {after}. Rows that were not delivered \
         can be before the position {place} now",
        shape.config.table
    );
    let (message, hint) = match back {
        Some(back) => (
            format!("{changed}, so the position is {back}"),
            format!("Rows since {back} are sent again. Accept it: `outbox-relay cursor resume {name}`."),
        ),
        None => (
            format!("{changed}, and rows that were delivered can be after it"),
            format!(
                "Compare the rows around that position with what was delivered, and set it between the two: `outbox-relay cursor seek {name} \
                 --at INSTANT`. Rows after it are sent, those that were sent before, too. Then accept the new order: `outbox-relay cursor \
                 resume {name}`."
            ),
        ),
    };
    let failure = Failure::of(Class::Fatal, "order_changed", message, &hint);
    // With the halt in the same transaction: no turn goes on in the other order before an operator has seen it.
    let halt = Halting { report: report::error(&failure, None), fingerprint: &ready.fingerprint };
    let rests_on = ready.rests_on(cursor.rests_on.rule.clone());
    within(engine, cursor.go_back(&rests_on, back, &halt, &engine.replica)).await?;
    report::halted(ready, &failure, None);
    Ok(TurnOutcome::Halted)
}
