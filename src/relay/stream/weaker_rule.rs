//! A table whose default became the transaction's start under a relay.
//!
//! Under `writers` a position may lie above the start of a transaction that is still open: what that one writes is stamped
//! when it is written. Once the default is `now()`, the same transaction writes a row that is stamped with its start, below
//! the position, and no later reading finds it.
//!
//! So each advance records from when on transactions are open (`open_since`), as it was known before the catalog said that
//! the rule is still `writers`. A transaction that writes under the new default was open then or began later, so none of its rows is
//! stamped earlier. When the rule has become weaker, the position goes back there, in a turn of its own, and the relay halts
//! until an operator accepts that. It does not go back where a row must not be sent twice, or where the instant is not known:
//! then the halt says what may be missing.

use crate::cursor::{Halting, LockedCursor, RestsOn};
use crate::position::Timestamp;
use crate::relay::Guarantee;
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::report;
use crate::sink::{Class, Failure};
use crate::source::Rule;
use crate::source::shape::Shape;

/// Whether a position that rests on this rule may lie above rows that the table lets come. A configuration that asks for more
/// than the column needs makes nothing weaker.
pub(in crate::relay) fn is_weaker(rests_on: Option<&str>, shape: &Shape) -> bool {
    rests_on == Some(Rule::Writers.as_str()) && shape.needs != Rule::Writers
}

/// Moves the position back where that is known and allowed, records the weaker rule, and halts.
pub(in crate::relay) async fn weaken(
    engine: &Engine,
    ready: &PreparedStream,
    cursor: LockedCursor,
) -> Result<TurnOutcome, TurnError> {
    let position = cursor.position.clone();
    let since = cursor.rests_on.open_since.filter(|_| ready.config.guarantee == Guarantee::AtLeastOnce);
    let back = since.filter(|since| position.as_ref().is_some_and(|position| position.created_at > *since));
    let place = position.map_or_else(|| "the beginning".to_owned(), |position| position.to_string());
    let failure = failure(ready, since, back, &place);
    // With the halt in the same transaction: no turn goes on under the weaker rule before an operator has seen it.
    let halt = Halting { report: report::error(&failure, None), fingerprint: &ready.fingerprint };
    // A column that has come with another stamp is another order, too: the next turn judges that.
    let rests_on = RestsOn { rule: Some(ready.shape.rule.as_str().to_owned()), ..cursor.rests_on.clone() };
    within(engine, cursor.go_back(&rests_on, back, &halt, &engine.replica)).await?;
    report::halted(ready, &failure, None);
    Ok(TurnOutcome::Halted)
}

fn failure(ready: &PreparedStream, since: Option<Timestamp>, back: Option<Timestamp>, place: &str) -> Failure {
    let (name, shape) = (&ready.config.name, &ready.shape);
    let changed = report::changed(shape, Rule::Writers, None);
    let restore = report::restore(name);
    let (message, hint) = match (since, back) {
        (_, Some(back)) => (
            format!(
                "{changed}. A transaction that was open before the change can still write below the position {place}, so the \
                 position is {back} now"
            ),
            format!("{restore} Rows since {back} are sent again."),
        ),
        (Some(_), None) => {
            (format!("{changed}. No transaction that was open then began before the position {place}"), restore)
        }
        (None, None) => (
            format!(
                "{changed}. A transaction that was open before the change can write below the position {place}, where it is \
                 not read"
            ),
            format!(
                "Look for such rows with created_at below that position. To read them, and all since, again: `outbox-relay \
                 cursor seek {name} --at INSTANT`. Then accept the new rule: `outbox-relay cursor resume {name}`."
            ),
        ),
    };
    Failure::of(Class::Fatal, "horizon_rule_changed", message, hint)
}
