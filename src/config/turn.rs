//! `[relay.turn]` and `[relay.poll]`: budgets, pauses, and the deadline that the other times follow from.

use std::time::Duration;

use super::lanes;
use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::units::print_duration;
use super::value;
use crate::pace;
use crate::relay::TurnConfig;

pub(super) const DEFAULT_ROWS: usize = 20_000;
/// For sinks that send messages one by one: a crash then repeats at most one.
pub(super) const DEFAULT_ROWS_ONE_BY_ONE: usize = 1;
const DEFAULT_BYTES: usize = 8 << 20;
/// Several such rows fit into the memory that the shipped deployment gives a replica.
pub(super) const DEFAULT_MAX_ROW_BYTES: usize = 16 << 20;
const DEFAULT_TIME: Duration = Duration::from_millis(500);
const DEFAULT_DEADLINE: Duration = Duration::from_secs(5);

/// Shorter than these, a turn could not finish over a network; longer, a dead holder would keep a cursor for minutes.
const SHORTEST_DEADLINE: Duration = Duration::from_millis(250);
const LONGEST_DEADLINE: Duration = Duration::from_secs(120);

pub(super) fn read(section: &Section<'_>, one_by_one: bool) -> TurnConfig {
    let one_by_one = one_by_one && !lanes::are_asked_for(section);
    let default_rows = if one_by_one { DEFAULT_ROWS_ONE_BY_ONE } else { DEFAULT_ROWS };
    let rows = section.read("rows", value::integer(1..=1_000_000)).map_or(default_rows, at_most_usize);
    lanes::judge_rows(section, rows);
    let bytes = section.read("bytes", value::size(1 << 10..=1 << 30)).map_or(DEFAULT_BYTES, at_most_usize);
    let max_row_bytes = section.read("max_row_bytes", value::size(64 << 10..=1 << 30));
    let max_row_bytes = max_row_bytes.map_or(DEFAULT_MAX_ROW_BYTES, at_most_usize);
    let deadline = section.read("deadline", value::duration(SHORTEST_DEADLINE..=LONGEST_DEADLINE));
    let time = section.read("time", value::duration(Duration::from_millis(1)..=LONGEST_DEADLINE));
    let wrong_time = section.has("time") && time.is_none();
    let wrong_deadline = section.has("deadline") && deadline.is_none();
    let (time, deadline) = (time.unwrap_or(DEFAULT_TIME), deadline.unwrap_or(DEFAULT_DEADLINE));
    if time >= deadline && !wrong_time && !wrong_deadline {
        let (key, what) = if section.has("time") {
            ("time", format!("a turn would still read at its deadline ({})", print_duration(deadline)))
        } else {
            ("deadline", format!("not above turn.time, which is {} unless written", print_duration(time)))
        };
        let fix = "the chain is: time < deadline; write a shorter time or a longer deadline";
        section.problem(key, Wrong::new(what, fix));
    }
    TurnConfig { rows, bytes, max_row_bytes, time, deadline }
}

fn at_most_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(super) fn read_poll(relay: &Section<'_>) -> pace::Config {
    let section = &relay.section("poll");
    let default = pace::Config::default();
    let bounds = Duration::from_micros(100)..=Duration::from_secs(60);
    let min = section.read("min", value::duration(bounds.clone()));
    let max = section.read("max", value::duration(bounds.clone()));
    let standby = section.read("standby", value::duration(bounds)).unwrap_or(default.standby);
    let comparable = (min.is_some() || !section.has("min")) && (max.is_some() || !section.has("max"));
    let (min, max) = (min.unwrap_or(default.min), max.unwrap_or(default.max));
    if min > max && comparable {
        let (key, what) = if section.has("min") {
            ("min", format!("above max, which is {}", print_duration(max)))
        } else {
            ("max", format!("below min, which is {} unless written", print_duration(min)))
        };
        section.problem(key, Wrong::new(what, "write min <= max"));
    }
    let notify = section.read("notify", value::boolean).unwrap_or(default.notify);
    let bounds = Duration::from_millis(1)..=Duration::from_secs(1);
    let freshness = relay.read("freshness", value::duration(bounds)).unwrap_or(default.freshness);
    pace::Config { min, max, standby, notify, freshness }
}

pub(super) fn write_poll(lines: &mut TomlLines, poll: &pace::Config) {
    lines.section("[relay.poll]");
    lines.duration("min", poll.min);
    lines.duration("max", poll.max);
    lines.duration("standby", poll.standby);
    // Absent unless asked for: it is part of the fingerprint that halts of older versions were written under.
    if poll.notify {
        lines.raw("notify", true);
    }
}

/// Only the rows of a stream come with a statement that can notify, and are looked for at a pace of their own.
pub(super) fn judge_notify(relay: &Section<'_>, poll: &pace::Config) {
    let source = relay.section("source");
    let is_queue = ["pending", "requests", "schedule"].iter().any(|kind| source.has(kind));
    if is_queue && relay.has("freshness") {
        let what = "only relays of [relay.source.stream] are paced by it";
        relay.problem("freshness", Wrong::new(what, "remove it; [relay.poll] says when to look"));
    }
    if poll.notify && is_queue {
        let what = "only relays of [relay.source.stream] are woken by notifications";
        relay.section("poll").problem("notify", Wrong::new(what, "remove it"));
    }
}

/// The shortest deadline of which that time-out is no more than 3/5.
pub(super) fn deadline_for(timeout: Duration) -> Duration {
    let needed = Duration::from_millis((timeout * 5 / 3).as_millis().try_into().unwrap_or(u64::MAX));
    if needed * 3 / 5 < timeout { needed + Duration::from_millis(1) } else { needed }
}

/// The time-out of one request: 3/5 of the deadline unless written, and never more, so that an answer that comes in
/// time is still inside the turn.
pub(super) fn read_timeout(sink: &Section<'_>, deadline: Duration) -> Duration {
    let longest = deadline * 3 / 5;
    let Some(timeout) = sink.read("timeout", value::duration(Duration::from_millis(10)..=LONGEST_DEADLINE)) else {
        return longest;
    };
    if timeout > longest {
        let what = format!("above 3/5 of turn.deadline, which is {}", print_duration(longest));
        let needed = deadline_for(timeout);
        let fix = if needed <= LONGEST_DEADLINE {
            format!(
                "write at most \"{}\", or [relay.turn] deadline = \"{}\"",
                print_duration(longest),
                print_duration(needed)
            )
        } else {
            format!("write at most \"{}\"", print_duration(longest))
        };
        sink.problem("timeout", Wrong::new(what, fix));
    }
    timeout
}
