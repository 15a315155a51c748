//! Whether what a relay passes is compared with its table.

use crate::relay::Config;
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;

/// That it is, or why it is not.
pub(super) fn finding(relay: &Config, shape: &Shape) -> Finding {
    let message = match relay.unaudited(shape.sweep.is_some()) {
        None if relay.is_only_recorded() => {
            "what is passed is recorded and kept for `verify` ([audit] keep), and not compared before: its source has a where".to_owned()
        }
        None => {
            let kept = if relay.audit.keep.is_some() { ", and kept for `verify`" } else { "" };
            format!("what is passed is compared with the table after a minute, ten minutes and an hour{kept} ([audit])")
        }
        Some(why) => format!("what is passed is not compared with the table: {}", why.as_str()),
    };
    Finding::new(Level::Ok, "audit", message)
}
