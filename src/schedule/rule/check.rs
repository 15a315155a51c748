//! Which parts of a rule may stand together: RFC 5545, section 3.3.10, and this program's bounds.

use rrule::{Frequency, NWeekday};

use super::Rule;
use crate::schedule::problem::Problem;

/// A rule by days may not have more times a day than one a minute.
const MOST_TIMES_A_DAY: usize = 1_440;

/// Refuses parts that the standard forbids together, that contradict each other, or that cost too much.
pub(super) fn fits_together(rule: &Rule) -> Result<(), Problem> {
    if rule.count.is_some() && rule.until.is_some() {
        return Err(Problem::rule("COUNT and UNTIL both say when it ends: keep one"));
    }
    if !rule.weeks.is_empty() && rule.freq != Frequency::Yearly {
        return Err(not_with(rule, "BYWEEKNO", "use FREQ=YEARLY"));
    }
    let by_days = matches!(rule.freq, Frequency::Monthly | Frequency::Weekly | Frequency::Daily);
    if !rule.year_days.is_empty() && by_days {
        return Err(not_with(rule, "BYYEARDAY", "use FREQ=YEARLY"));
    }
    if !rule.month_days.is_empty() && rule.freq == Frequency::Weekly {
        return Err(not_with(rule, "BYMONTHDAY", "use FREQ=MONTHLY, or FREQ=DAILY with BYDAY"));
    }
    numbered_days(rule)?;
    let mut other = rule.clone();
    other.positions.clear();
    if !rule.positions.is_empty() && !other.has_by_parts() {
        return Err(Problem::rule("BYSETPOS chooses among what other BY… parts give: add one, or leave it out"));
    }
    let times = [&rule.hours, &rule.minutes, &rule.seconds].map(|list| list.len().max(1)).iter().product::<usize>();
    if !rule.is_sub_daily() && times > MOST_TIMES_A_DAY {
        return Err(Problem::rule(format!(
            "BYHOUR, BYMINUTE and BYSECOND give {times} times a day: {MOST_TIMES_A_DAY} are the most; use FREQ=MINUTELY or FREQ=SECONDLY"
        )));
    }
    Ok(())
}

fn numbered_days(rule: &Rule) -> Result<(), Problem> {
    for day in &rule.days {
        let NWeekday::Nth(number, weekday) = day else { continue };
        let name = weekday.to_string().to_uppercase();
        let name = &name[..2];
        let most = match rule.freq {
            Frequency::Yearly if !rule.weeks.is_empty() => {
                return Err(Problem::rule(format!(
                    "BYDAY={number}{name} has no meaning with BYWEEKNO: leave out the {number}"
                )));
            }
            Frequency::Yearly if rule.months.is_empty() => 53,
            Frequency::Yearly | Frequency::Monthly => 5,
            _ => {
                let message = format!("BYDAY={number}{name}");
                return Err(not_with(rule, &message, "use FREQ=MONTHLY or FREQ=YEARLY, or leave out the number"));
            }
        };
        if number.abs() > most {
            return Err(Problem::rule(format!("BYDAY={number}{name}: the number is at most {most} here")));
        }
    }
    Ok(())
}

fn not_with(rule: &Rule, part: &str, fix: &str) -> Problem {
    Problem::rule(format!("{part} is not allowed with FREQ={}: {fix}", rule.freq))
}
