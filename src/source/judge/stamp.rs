//! How `created_at` comes about, and so which rule holds, and how sure it is.

use super::super::finding::{Finding, Level};
use super::super::table::{Column, Stamp, Table};
use super::super::{Rule, RuleChoice, Stream};
use super::columns::digits;
use crate::database::{quote_ident, quote_literal};

pub(super) const WITH_ZONE: &str = "timestamp with time zone";
pub(super) const WITHOUT_ZONE: &str = "timestamp without time zone";

/// How sure the rule is for one relation, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sure {
    Unknown,
    TransactionStart,
    DefaultOnly,
    Proven,
}

/// The weakest relation of the family, and how sure it is.
struct Weakest<'a> {
    stamp: Option<&'a Stamp>,
    sure: Sure,
}

/// The rule, and whether it is proven.
pub(super) fn judge(table: &Table, config: &Stream, findings: &mut Vec<Finding>) -> (Rule, bool) {
    let Some(column) = table.column(&config.created_at) else { return (Rule::Transactions, false) };
    let stamp = table.stamps.iter().min_by_key(|stamp| sure(stamp, config, column));
    let weakest = Weakest { stamp, sure: stamp.map_or(Sure::Unknown, |stamp| sure(stamp, config, column)) };
    let needed = if weakest.sure >= Sure::DefaultOnly { Rule::Writers } else { Rule::Transactions };
    let rule = match config.horizon {
        RuleChoice::Auto => needed,
        RuleChoice::Writers => Rule::Writers,
        RuleChoice::Transactions => Rule::Transactions,
        RuleChoice::Window => Rule::Window,
    };
    if rule == Rule::Window {
        let message = "horizon = \"window\" loses rows that commit later than the window";
        findings.push(Finding::new(Level::Warn, "horizon_window", message).setting("Set horizon = \"auto\"."));
        return (rule, false);
    }
    let text = describe(&weakest, rule, config);
    if rule == Rule::Writers && needed == Rule::Transactions {
        let message = format!("horizon = \"writers\" loses rows here: {text}");
        findings.push(Finding::new(Level::Error, "horizon_too_weak", message).setting("Set horizon = \"auto\"."));
        return (rule, false);
    }
    findings.push(match weakest.sure {
        Sure::Proven => Finding::new(Level::Ok, "created_at_proven", text),
        Sure::DefaultOnly | Sure::TransactionStart | Sure::Unknown => {
            let finding = Finding::new(Level::Warn, "created_at_unproven", text);
            match mend(&weakest, table, config) {
                Some(sql) => finding.sql(sql),
                None => {
                    finding.setting("Drop the triggers, and leave the predefined roles, that could set the column.")
                }
            }
        }
    });
    (rule, weakest.sure == Sure::Proven)
}

/// The SQL that makes it proven, if SQL of ours can.
fn mend(weakest: &Weakest<'_>, table: &Table, config: &Stream) -> Option<String> {
    let relation = weakest.stamp.map_or_else(|| config.table.quoted(), |stamp| stamp.name.clone());
    let column = quote_ident(&config.created_at);
    let stampable = config.created_at == "created_at" && config.time_zone.is_none();
    let mut sql = String::new();
    if weakest.sure < Sure::DefaultOnly {
        let default = match &config.time_zone {
            None => "clock_timestamp()".to_owned(),
            Some(zone) => format!("(clock_timestamp() AT TIME ZONE {})", quote_literal(zone).trim()),
        };
        sql = format!("ALTER TABLE {relation} ALTER COLUMN {column} SET DEFAULT {default}; ");
    }
    if stampable {
        // Where another trigger runs on updates, the stamp must run on all of them to have the last word.
        let of = if weakest.stamp.is_some_and(|stamp| stamp.update_trigger) {
            String::new()
        } else {
            format!(" OF {column}")
        };
        sql.push_str(&format!(
            "CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE{of} ON {relation} FOR EACH ROW EXECUTE FUNCTION \
             outbox.stamp_created_at();"
        ));
        return Some(sql);
    }
    // What a predefined role may do is not a grant on the table: only leaving the role ends it.
    let writers = weakest.stamp.map_or(&[][..], |stamp| stamp.writers.as_slice());
    let roles: Vec<_> = writers.iter().filter(|role| !role.starts_with("pg_")).map(|role| quote_ident(role)).collect();
    if roles.is_empty() {
        return Some(sql.trim_end().to_owned()).filter(|sql| !sql.is_empty());
    }
    let roles = roles.join(", ");
    let others: Vec<_> =
        table.columns.iter().filter(|c| c.name != config.created_at).map(|c| quote_ident(&c.name)).collect();
    let others = others.join(", ");
    sql.push_str(&format!(
        "REVOKE INSERT, UPDATE ON {relation} FROM PUBLIC, {roles}; GRANT INSERT ({others}), UPDATE ({others}) ON {relation} \
         TO {roles};"
    ));
    Some(sql)
}

fn describe(weakest: &Weakest<'_>, rule: Rule, config: &Stream) -> String {
    let relation = weakest.stamp.map_or_else(|| config.table.to_string(), |stamp| stamp.name.clone());
    let column = format!("{relation}.{}", config.created_at);
    let default = weakest.stamp.and_then(|stamp| stamp.default.as_deref()).unwrap_or("none");
    let rule = rule.as_str();
    match weakest.sure {
        Sure::Proven => format!("{column} is always the clock at the insert: rule {rule}, proven"),
        Sure::DefaultOnly => format!(
            "{column} has the right default, but {} could set another value: rule {rule}, proven for rows that use the default",
            who(weakest.stamp)
        ),
        Sure::TransactionStart => format!(
            "{column} is the transaction's start (default {default}): rule {rule}, any open transaction of the database \
             holds it back"
        ),
        Sure::Unknown => format!(
            "{column} is set by the application or by an expression that is not known (default {default}): rule {rule}, \
             unproven"
        ),
    }
}

/// Who could send a value of their own; the first few by name.
fn who(stamp: Option<&Stamp>) -> String {
    let writers = stamp.map_or(&[][..], |stamp| stamp.writers.as_slice());
    match writers {
        [] => "a trigger".to_owned(),
        [one] => format!("role {one}"),
        few if few.len() <= 3 => format!("roles {}", few.join(", ")),
        many => format!("roles {} and {} more", many[..3].join(", "), many.len() - 3),
    }
}

fn sure(stamp: &Stamp, config: &Stream, column: &Column) -> Sure {
    if stamp.trigger && column.type_name == WITH_ZONE {
        return Sure::Proven;
    }
    match stamp.default.as_deref().map(|default| source_of(default, config, digits(column))) {
        Some(Clock::Now) if stamp.writers.is_empty() && !stamp.other_trigger => Sure::Proven,
        Some(Clock::Now) => Sure::DefaultOnly,
        Some(Clock::TransactionStart) => Sure::TransactionStart,
        Some(Clock::Unknown) | None => Sure::Unknown,
    }
}

enum Clock {
    Now,
    TransactionStart,
    Unknown,
}

/// What a default, as `pg_get_expr` prints it, takes its time from.
fn source_of(default: &str, config: &Stream, digits: u32) -> Clock {
    let mut text = default.trim().to_owned();
    // A cast to the column's own precision changes nothing; one to less rounds the clock down by more than the margin.
    if let Some((inner, cast)) = text.rsplit_once("::timestamp") {
        let kind = if config.time_zone.is_some() { "without time zone" } else { "with time zone" };
        let kept = cast
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(kind))
            .and_then(|rest| rest.trim_end().strip_suffix(')'))
            .and_then(|kept| kept.parse::<u32>().ok());
        if kept.is_none_or(|kept| kept < digits) {
            return Clock::Unknown;
        }
        text = strip(inner).to_owned();
    }
    let mut clock = strip(&text).to_owned();
    if let Some(zone) = &config.time_zone {
        let suffix = format!(" AT TIME ZONE {}::text", quote_literal(zone).trim());
        match clock.strip_suffix(&suffix) {
            Some(inner) => clock = strip(inner).to_owned(),
            None => return Clock::Unknown,
        }
    }
    match clock.as_str() {
        "clock_timestamp()" => Clock::Now,
        "now()" | "CURRENT_TIMESTAMP" | "transaction_timestamp()" | "statement_timestamp()" => Clock::TransactionStart,
        other => {
            match other.strip_prefix("CURRENT_TIMESTAMP(").and_then(|rest| rest.strip_suffix(')')?.parse::<u32>().ok())
            {
                Some(kept) if kept >= digits => Clock::TransactionStart,
                Some(_) | None => Clock::Unknown,
            }
        }
    }
}

/// Without one pair of parentheses around the whole.
fn strip(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) if balanced(inner) => inner.trim(),
        _ => text,
    }
}

fn balanced(text: &str) -> bool {
    let mut depth = 0;
    text.chars().all(|letter| {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth >= 0
    })
}
