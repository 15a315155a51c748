//! Tables of so many partitions that planning a statement takes seconds.

use std::time::Duration;

use crate::relay::Config;
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;

/// Up to so many, planning leaves time enough with the default deadline.
const MANY: usize = 1_000;

/// A session that knows nothing of the partitions yet needs about a millisecond for each, more on a busy server.
const EACH: Duration = Duration::from_millis(5);

/// Warns of a deadline that leaves no time for that; a statement may take three fifths of it.
pub(super) fn finding(relay: &Config, shape: &Shape) -> Option<Finding> {
    let count = shape.descendants.len();
    let needed = EACH * u32::try_from(count).unwrap_or(u32::MAX);
    (count > MANY && relay.turn.deadline < needed).then(|| {
        let message = format!(
            "{} has {count} partitions: to plan its statements can take longer than they may, and then no row is delivered",
            shape.config.table
        );
        let fix = format!("Write deadline = \"{}s\" under [relay.turn], or detach old partitions.", needed.as_secs() + 1);
        Finding::new(Level::Warn, "many_partitions", message).setting(fix)
    })
}
