//! Rules drawn from the table of RFC 5545, section 3.3.10: every part where the table allows it, alone and beside others.

use fastrand::Rng;

const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/// A part with one to `most` drawn values; now and then, one time in `rarity`.
fn part(random: &mut Rng, rarity: u8, name: &str, most: usize, value: impl Fn(&mut Rng) -> String) -> String {
    if random.u8(..rarity) > 0 {
        return String::new();
    }
    let values: Vec<String> = (0..random.usize(1..=most)).map(|_| value(random)).collect();
    format!(";{name}={}", values.join(","))
}

fn number(random: &mut Rng, from: i32, to: i32) -> String {
    random.i32(from..=to).to_string()
}

/// Counted from the start or from the end.
fn signed(random: &mut Rng, most: i32) -> String {
    let number = random.i32(1..=most);
    (if random.bool() { number } else { -number }).to_string()
}

fn day(random: &mut Rng) -> String {
    DAYS[random.usize(..7)].to_owned()
}

/// Plain or numbered, in one list.
fn numbered(random: &mut Rng, most: i32) -> String {
    let number = if random.bool() { String::new() } else { signed(random, most) };
    number + &day(random)
}

fn times(random: &mut Rng) -> String {
    let hours = part(random, 4, "BYHOUR", 3, |random| number(random, 0, 23));
    let minutes = part(random, 4, "BYMINUTE", 3, |random| number(random, 0, 59));
    hours + &minutes + &part(random, 8, "BYSECOND", 3, |random| number(random, 0, 59))
}

fn yearly(random: &mut Rng) -> String {
    let months = part(random, 2, "BYMONTH", 3, |random| number(random, 1, 12));
    let most = if months.is_empty() { 53 } else { 5 };
    months
        + &match random.u8(..6) {
            0 => part(random, 1, "BYWEEKNO", 3, |random| signed(random, 53)) + &part(random, 2, "BYDAY", 3, day),
            1 => part(random, 1, "BYYEARDAY", 4, |random| signed(random, 366)),
            2 => part(random, 1, "BYMONTHDAY", 4, |random| signed(random, 31)),
            3 => part(random, 1, "BYMONTHDAY", 6, |random| signed(random, 28)) + &part(random, 1, "BYDAY", 4, day),
            _ => part(random, 1, "BYDAY", 4, |random| numbered(random, most)),
        }
        + &times(random)
}

fn monthly(random: &mut Rng) -> String {
    let months = part(random, 4, "BYMONTH", 3, |random| number(random, 1, 12));
    let days = match random.u8(..4) {
        0 => part(random, 1, "BYMONTHDAY", 4, |random| signed(random, 31)),
        1 => {
            part(random, 1, "BYMONTHDAY", 6, |random| signed(random, 28))
                + &part(random, 1, "BYDAY", 4, |random| numbered(random, 4))
        }
        _ => part(random, 1, "BYDAY", 4, |random| numbered(random, 5)),
    };
    months + &days + &times(random)
}

fn by_days(random: &mut Rng, month_days: bool) -> String {
    let months = part(random, 4, "BYMONTH", 3, |random| number(random, 1, 12));
    let numbers =
        if month_days { part(random, 4, "BYMONTHDAY", 6, |random| signed(random, 31)) } else { String::new() };
    months + &numbers + &part(random, 2, "BYDAY", 4, day) + &times(random)
}

fn hourly(random: &mut Rng) -> String {
    let months = part(random, 6, "BYMONTH", 3, |random| number(random, 1, 12));
    let days = match random.u8(..6) {
        0 => part(random, 1, "BYYEARDAY", 4, |random| signed(random, 365)),
        1 => part(random, 1, "BYMONTHDAY", 4, |random| signed(random, 31)),
        _ => part(random, 2, "BYDAY", 4, day),
    };
    months + &days + &times(random)
}

/// Days that no year or month is without: the second implementation counts every minute and second of the others.
fn dense(random: &mut Rng) -> String {
    part(random, 2, "BYDAY", 4, day) + &times(random)
}

/// A rule and its start: an instant of the years 1970 to 2030, in seconds since 1970.
pub(super) fn rule(random: &mut Rng) -> (String, i64) {
    let (name, most, parts): (_, _, fn(&mut Rng) -> String) = match random.u8(..10) {
        0..3 => ("YEARLY", 3, yearly),
        3..6 => ("MONTHLY", 7, monthly),
        6 => ("WEEKLY", 5, |random| by_days(random, false)),
        7 => ("DAILY", 10, |random| by_days(random, true)),
        8 => ("HOURLY", 30, hourly),
        _ if random.bool() => ("MINUTELY", 90, dense),
        _ => ("SECONDLY", 200, dense),
    };
    let interval = if random.bool() { 1 } else { random.u16(1..=most) };
    let mut rule = format!("FREQ={name};INTERVAL={interval};WKST={}{}", day(random), parts(random));
    if rule.contains(";BY") {
        // Days and what is shorter often have a single occurrence, which has no second place.
        let most = if most >= 10 { 1 } else { 3 };
        rule += &part(random, 4, "BYSETPOS", 2, |random| signed(random, most));
    }
    rule += &match random.u8(..6) {
        0 => format!(";COUNT={}", random.u8(1..12)),
        1 => format!(";UNTIL=20{}0704T120000Z", random.u8(31..60)),
        _ => String::new(),
    };
    (rule, random.i64(0..1_900_000_000))
}
