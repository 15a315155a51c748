//! How `created_at` comes about, and so which rule holds, and how sure it is.

use super::super::certainty::Certainty;
use super::super::finding::{Finding, Level};
use super::super::table::{Column, Stamp, Table};
use super::super::{Rule, RuleChoice, Stream};
use super::clock::{Clock, source_of};
use super::columns::digits;
use super::gap;

pub(super) const WITH_ZONE: &str = "timestamp with time zone";
pub(super) const WITHOUT_ZONE: &str = "timestamp without time zone";

/// Where a relation's `created_at` comes from, the least sure first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// The application, or an expression that is not known.
    Unknown,
    /// A default that is the transaction's start.
    TransactionStart,
    /// A default that is the clock.
    Default,
    /// The stamping trigger.
    Trigger,
}

impl Origin {
    /// What a row of such a relation is covered by.
    const fn certainty(self, table: &Table) -> Certainty {
        match self {
            Self::Trigger => Certainty::Proven,
            Self::Default => Certainty::ProvenForDefault,
            Self::TransactionStart if table.reads_activity => Certainty::Bounded,
            Self::TransactionStart | Self::Unknown => Certainty::Unproven,
        }
    }
}

/// The least sure relation of the family, and where its `created_at` comes from.
pub(super) struct Weakest<'a> {
    pub(super) stamp: Option<&'a Stamp>,
    pub(super) origin: Origin,
}

/// The rule in force, the one that the column needs, and how sure the former is.
pub(super) fn judge(table: &Table, config: &Stream, findings: &mut Vec<Finding>) -> (Rule, Rule, Certainty) {
    let Some(column) = table.column(&config.created_at) else {
        return (Rule::Transactions, Rule::Transactions, Certainty::Unproven);
    };
    let stamp = table.stamps.iter().min_by_key(|stamp| origin(stamp, config, column));
    let weakest = Weakest { stamp, origin: stamp.map_or(Origin::Unknown, |stamp| origin(stamp, config, column)) };
    let needed = if weakest.origin >= Origin::Default { Rule::Writers } else { Rule::Transactions };
    let rule = match config.horizon {
        RuleChoice::Auto => needed,
        RuleChoice::Writers => Rule::Writers,
        RuleChoice::Transactions => Rule::Transactions,
        RuleChoice::Window => Rule::Window,
    };
    if rule == Rule::Window {
        let message = "horizon = \"window\" loses rows that commit later than the window: unproven";
        findings.push(Finding::new(Level::Warn, "horizon_window", message).setting("Set horizon = \"auto\"."));
        return (rule, needed, Certainty::Unproven);
    }
    let certainty = weakest.origin.certainty(table);
    let text = describe(&weakest, rule, certainty, table, config);
    if rule == Rule::Writers && needed == Rule::Transactions {
        let message = format!("horizon = \"writers\" loses rows here: {text}");
        findings.push(Finding::new(Level::Error, "horizon_too_weak", message).setting("Set horizon = \"auto\"."));
        return (rule, needed, Certainty::Unproven);
    }
    findings.push(if certainty.proven() {
        Finding::new(Level::Ok, "created_at_proven", text)
    } else {
        gap::closed(Finding::new(Level::Warn, "created_at_unproven", text), &weakest, table, config)
    });
    (rule, needed, certainty)
}

/// Why the trigger of the least sure relation does not count, behind a semicolon; empty where it does, or there is none.
pub(super) fn trigger(table: &Table, config: &Stream) -> String {
    let Some(column) = table.column(&config.created_at) else { return String::new() };
    let weakest = table.stamps.iter().min_by_key(|stamp| origin(stamp, config, column));
    skipped(weakest.filter(|stamp| !stamp.guard.holds()))
}

fn origin(stamp: &Stamp, config: &Stream, column: &Column) -> Origin {
    if stamp.generated {
        return Origin::Unknown;
    }
    if stamp.guard.holds() && column.type_name == WITH_ZONE {
        return Origin::Trigger;
    }
    match stamp.default.as_deref().map(|default| source_of(default, config, digits(column))) {
        Some(Clock::Now) => Origin::Default,
        Some(Clock::TransactionStart) => Origin::TransactionStart,
        Some(Clock::Unknown) | None => Origin::Unknown,
    }
}

/// One sentence that ends with the rule and its certainty.
fn describe(weakest: &Weakest<'_>, rule: Rule, certainty: Certainty, table: &Table, config: &Stream) -> String {
    let relation = weakest.stamp.map_or_else(|| config.table.to_string(), |stamp| stamp.guard.name.clone());
    let column = format!("{relation}.{}", config.created_at);
    let default = weakest.stamp.and_then(|stamp| stamp.default.as_deref()).unwrap_or("none");
    let skipped = skipped(weakest.stamp);
    let what = match weakest.origin {
        Origin::Trigger => format!("{column} is always the clock at the insert"),
        Origin::Default => {
            format!("{column} has the right default, but {} could send another value{skipped}", who(weakest.stamp))
        }
        Origin::TransactionStart if table.reads_activity => format!(
            "{column} is the transaction's start (default {default}), and any open transaction of the database holds the \
             rule back{skipped}"
        ),
        Origin::TransactionStart => format!(
            "{column} is the transaction's start (default {default}), and role {} may not read when transactions began: \
             one client message with several transactions can lose rows{skipped}",
            table.role
        ),
        Origin::Unknown if weakest.stamp.is_some_and(|stamp| stamp.generated) => {
            format!("{column} is generated from other columns ({default}), after all triggers")
        }
        Origin::Unknown => format!(
            "{column} is set by the application or by an expression that is not known (default {default}){skipped}"
        ),
    };
    format!("{what}: rule {}, {}", rule.as_str(), certainty.as_str())
}

/// Why the trigger that is there does not count.
fn skipped(stamp: Option<&Stamp>) -> String {
    match stamp.and_then(|stamp| stamp.guard.last.as_ref().map(|last| (last, &stamp.guard))) {
        Some((last, guard)) if guard.disabled => format!("; trigger {last} is disabled"),
        Some((last, guard)) if guard.fits => {
            format!("; trigger {last} is not ENABLE ALWAYS, and session_replication_role = replica skips it")
        }
        Some((last, _)) => format!("; trigger {last} runs last before a row is stored"),
        None => String::new(),
    }
}

/// Who could send a value of their own; the first few roles by name.
fn who(stamp: Option<&Stamp>) -> String {
    let Some(stamp) = stamp else { return "its owner".to_owned() };
    let roles = match stamp.writers.as_slice() {
        [] => String::new(),
        [one] => format!(", role {one}"),
        few if few.len() <= 3 => format!(", roles {}", few.join(", ")),
        many => format!(", roles {} and {} more", many[..3].join(", "), many.len() - 3),
    };
    format!("its owner {}{roles}, and views, rules, triggers and SECURITY DEFINER functions of theirs", stamp.owner)
}
