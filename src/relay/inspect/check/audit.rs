//! Whether what a relay passes is compared with its table.

use crate::relay::Config;
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;

/// That it is, or why it is not.
pub(super) fn finding(relay: &Config, shape: &Shape) -> Finding {
    let message = match relay.unaudited(shape.sweep.is_some()) {
        None => {
            "what is passed is compared with the table after a minute, ten minutes and an hour ([audit])".to_owned()
        }
        Some(why) => format!("what is passed is not compared with the table: {why}"),
    };
    Finding::new(Level::Ok, "audit", message)
}
