//! `[retention]`: how long what is done with is kept.

use std::time::Duration;

use super::section::Section;
use super::show::TomlLines;
use super::value;
use crate::retention::Config;

const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn read(section: &Section<'_>) -> Config {
    let default = Config::default();
    // A minute below, ten years above: what is meant to be kept indefinitely is left out.
    let time = |key| section.read(key, value::duration(Duration::from_secs(60)..=DAY * 3660));
    Config {
        completed_requests: time("completed_requests"),
        sent_marks: time("sent_marks"),
        dead_letters: time("dead_letters"),
        actions: time("actions"),
        messages: time("messages"),
        messages_ahead: section
            .read("messages_ahead", value::integer(1..=31))
            .and_then(|days| i32::try_from(days).ok())
            .unwrap_or(default.messages_ahead),
        every: section.read("every", value::duration(Duration::from_secs(1)..=DAY)).unwrap_or(default.every),
    }
}

/// As `config show` prints it.
pub(super) fn write(lines: &mut TomlLines, retention: &Config) {
    lines.section("[retention]");
    let times = [
        ("completed_requests", retention.completed_requests),
        ("sent_marks", retention.sent_marks),
        ("dead_letters", retention.dead_letters),
        ("actions", retention.actions),
        ("messages", retention.messages),
    ];
    for (key, time) in times {
        match time {
            Some(time) => lines.duration(key, time),
            None => lines.comment(&format!("{key}: kept indefinitely")),
        }
    }
    lines.raw("messages_ahead", retention.messages_ahead);
    lines.duration("every", retention.every);
}
