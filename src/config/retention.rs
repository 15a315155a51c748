//! `[retention]`: how long what is done with is kept.

use std::time::Duration;

use super::section::Section;
use super::value;
use crate::retention::Config;

const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn read(section: &Section<'_>) -> Config {
    let default = Config::default();
    // A minute below, ten years above: what is meant to be kept for ever is left out.
    let time = |key| section.read(key, value::duration(Duration::from_secs(60)..=DAY * 3660));
    Config {
        completed_requests: time("completed_requests"),
        sent_marks: time("sent_marks"),
        dead_letters: time("dead_letters"),
        messages: time("messages"),
        messages_ahead: section
            .read("messages_ahead", value::integer(1..=31))
            .and_then(|days| i32::try_from(days).ok())
            .unwrap_or(default.messages_ahead),
        every: section.read("every", value::duration(Duration::from_secs(1)..=DAY)).unwrap_or(default.every),
    }
}
