//! Local times as instants. A local time that does not exist is taken with the offset before the gap, so that 02:30 becomes
//! 03:30; of one that exists twice the first is taken.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _};
use chrono_tz::Tz;

use super::problem::{Problem, shown};

/// No zone has ever skipped more than a day: Apia did, on 30 December 2011.
pub(super) const LONGEST_GAP: i64 = 25 * 3_600;

/// How a local time became an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The clocks show it once.
    Once,
    /// The clocks skip it.
    Skipped,
    /// The clocks show it twice, and this is the first time.
    FirstOfTwo,
}

/// Finds a zone by its IANA name.
pub(super) fn parse(name: &str) -> Result<Tz, Problem> {
    name.parse().map_err(|_| {
        let like = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
        let like = like.clone().find(|other| other.eq_ignore_ascii_case(name)).or_else(|| {
            let city = |zone: &str| zone.rsplit('/').next().unwrap_or(zone).to_ascii_lowercase();
            like.clone().find(|other| city(other) == city(&name.replace(' ', "_")))
        });
        let fix = match like {
            Some(like) => format!("did you mean {like}?"),
            None => "write an IANA name, for example Europe/Berlin or UTC".to_owned(),
        };
        Problem::new("time_zone", format!("time_zone \"{}\" is not known: {fix}", shown(name)))
    })
}

/// True for the names of UTC itself.
pub(super) fn is_utc(zone: Tz) -> bool {
    matches!(
        zone,
        Tz::UTC | Tz::Etc__UTC | Tz::UCT | Tz::Etc__UCT | Tz::Universal | Tz::Etc__Universal | Tz::Zulu | Tz::Etc__Zulu
    )
}

/// Seconds of a naive time since 1970, as if it were UTC.
pub(super) fn seconds(at: NaiveDateTime) -> i64 {
    at.and_utc().timestamp()
}

/// The offset from UTC at an instant.
pub(super) fn offset(zone: Tz, instant: i64) -> i64 {
    DateTime::from_timestamp(instant, 0)
        .map_or(0, |at| i64::from(zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()))
}

/// What clocks show at an instant. Instants here lie in years from 1900 to 2201, which all have a naive time.
pub(super) fn local(zone: Tz, instant: i64) -> NaiveDateTime {
    DateTime::from_timestamp(instant.saturating_add(offset(zone, instant)), 0).unwrap_or_default().naive_utc()
}

/// The instant of a local time.
pub(super) fn instant(zone: Tz, local: NaiveDateTime) -> (i64, Fate) {
    match zone.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(offset) => (seconds(local) - i64::from(offset.fix().local_minus_utc()), Fate::Once),
        MappedLocalTime::Ambiguous(one, other) => {
            let first = one.fix().local_minus_utc().max(other.fix().local_minus_utc());
            (seconds(local) - i64::from(first), Fate::FirstOfTwo)
        }
        MappedLocalTime::None => (seconds(local) - before_the_gap(zone, local), Fate::Skipped),
    }
}

/// The offset that was in force when the clocks came to the gap around a local time.
fn before_the_gap(zone: Tz, local: NaiveDateTime) -> i64 {
    let quarter = TimeDelta::minutes(15);
    let mut earlier = local;
    for _ in 0..LONGEST_GAP / 900 {
        earlier -= quarter;
        match zone.offset_from_local_datetime(&earlier) {
            MappedLocalTime::None => {}
            MappedLocalTime::Single(offset) => return i64::from(offset.fix().local_minus_utc()),
            MappedLocalTime::Ambiguous(one, other) => {
                return i64::from(one.fix().local_minus_utc().min(other.fix().local_minus_utc()));
            }
        }
    }
    offset(zone, seconds(local) - LONGEST_GAP)
}
