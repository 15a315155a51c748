//! Whether a table can be read as a stream, and which horizon rule its `created_at` needs. Pure.
//!
//! | `created_at` | rule | how sure |
//! |---|---|---|
//! | `DEFAULT clock_timestamp()`, and nobody may send another value | `writers` | proven |
//! | `DEFAULT clock_timestamp()`, writers could send their own | `writers` | for rows that use the default |
//! | `DEFAULT now()` and its like | `transactions` | bounded by the window |
//! | anything else | `transactions` | unproven |
//!
//! The rule is the weakest over the table, its ancestors and its descendants: rows can come in through each.

use std::time::Duration;

use super::finding::{Finding, Level};
use super::shape::IdType;
use super::table::{Column, Stamp, Table};
use super::{Config, Rule, RuleChoice};
use crate::database::{quote_ident, quote_literal};

const WITH_ZONE: &str = "timestamp with time zone";
const WITHOUT_ZONE: &str = "timestamp without time zone";

/// What is made of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which writers hold the horizon back.
    pub rule: Rule,
    /// Nobody can write a row that the rule does not cover.
    pub proven: bool,
    /// How it came about, and what is wrong.
    pub findings: Vec<Finding>,
}

/// How sure the rule is for one relation, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sure {
    Unknown,
    TransactionStart,
    DefaultOnly,
    Proven,
}

/// One unit of the precision of a timestamp column.
#[must_use]
pub fn precision(column: Option<&Column>) -> Duration {
    let digits = column.map_or(6, |column| if column.modifier < 0 { 6 } else { column.modifier.min(6) });
    Duration::from_micros(10_u64.pow(6 - digits.unsigned_abs()))
}

/// Judges a table for a source.
#[must_use]
pub fn judge(table: &Table, config: &Config) -> Verdict {
    let mut findings = Vec::new();
    kind(table, config, &mut findings);
    columns(table, config, &mut findings);
    indexes(table, config, &mut findings);
    let (rule, proven) = rule(table, config, &mut findings);
    Verdict { rule, proven, findings }
}

fn kind(table: &Table, config: &Config, findings: &mut Vec<Finding>) {
    let name = config.table.quoted();
    let mut found = Vec::new();
    let mut refuse = |code, what: &str, mend: &str| {
        found.push(Finding::new(Level::Error, code, format!("{} {what}", config.table)).setting(mend));
    };
    match table.kind.as_str() {
        "r" | "p" => {}
        "v" | "m" => refuse("table_kind", "is a view: its writers cannot be seen", "Read the table behind the view."),
        "f" => {
            refuse("table_kind", "is a foreign table: its writers cannot be seen", "Run the relay where the table is.")
        }
        _ => refuse("table_kind", "is not a table", "Correct [relay.source.stream] table."),
    }
    if table.persistence == "t" {
        refuse("table_kind", "is a temporary table: other sessions cannot see its rows", "Use a permanent table.");
    }
    if table.subscribed {
        refuse(
            "table_subscribed",
            "is written by a logical subscription, which keeps the publisher's created_at",
            "Run the relay on the publisher.",
        );
    }
    findings.append(&mut found);
    if table.persistence == "u" {
        findings.push(
            Finding::new(
                Level::Warn,
                "table_unlogged",
                format!("{} is unlogged: a crash of PostgreSQL empties it", config.table),
            )
            .sql(format!("ALTER TABLE {name} SET LOGGED;")),
        );
    }
    if !table.schema_usage {
        findings.push(
            Finding::new(
                Level::Error,
                "privilege_missing",
                format!("this role may not look into schema {}", config.table.schema),
            )
            .sql(format!("GRANT USAGE ON SCHEMA {} TO CURRENT_USER_OF_THE_RELAY;", quote_ident(&config.table.schema))),
        );
    }
    if table.row_security {
        findings.push(
            Finding::new(
                Level::Error,
                "row_security",
                format!("row security of {} binds this role: rows would be left out", config.table),
            )
            .sql("ALTER ROLE the_relays_role BYPASSRLS;"),
        );
    }
    if table.superuser {
        findings.push(
            Finding::new(Level::Warn, "superuser", "the relay runs as a superuser: it needs far less")
                .setting("Run `outbox-relay migrate up --relay-role ROLE` and connect as that role."),
        );
    }
}

fn columns(table: &Table, config: &Config, findings: &mut Vec<Finding>) {
    let name = config.table.quoted();
    let mut check = |which: &str, column: &str, fits: &dyn Fn(&Column) -> Option<(String, String)>| {
        let Some(found) = table.column(column) else {
            findings.push(
                Finding::new(Level::Error, "column_missing", format!("{} has no column {column}", config.table))
                    .setting(format!("Set [relay.source.stream] {which} to a column of the table.")),
            );
            return;
        };
        if !found.readable {
            findings.push(
                Finding::new(
                    Level::Error,
                    "privilege_missing",
                    format!("this role may not read {}.{column}", config.table),
                )
                .sql(format!("GRANT SELECT ON {name} TO the_relays_role;")),
            );
        }
        if let Some((message, sql)) = fits(found) {
            findings.push(Finding::new(Level::Error, "column_type", message).sql(sql));
        }
        if !found.not_null {
            findings.push(
                Finding::new(
                    Level::Error,
                    "column_nullable",
                    format!("{}.{column} may be NULL: such rows would be skipped silently", config.table),
                )
                .sql(format!("ALTER TABLE {name} ALTER COLUMN {} SET NOT NULL;", quote_ident(column))),
            );
        }
    };
    check("id", &config.id, &|column| {
        IdType::named(&column.type_name).is_none().then(|| {
            (
                format!(
                    "{}.{} is {}; ids are bigint, integer, smallint, uuid or text",
                    config.table, column.name, column.type_name
                ),
                format!("ALTER TABLE {name} ADD COLUMN relay_id bigint GENERATED ALWAYS AS IDENTITY;"),
            )
        })
    });
    check("created_at", &config.created_at, &|column| created_at_type(column, config));
    if config.time_zone.is_some() && table.zone_fixed != Some(true) {
        findings.push(
            Finding::new(
                Level::Error,
                "time_zone",
                format!(
                    "time_zone {} is unknown or has changing offsets: instants would repeat",
                    config.time_zone.as_deref().unwrap_or_default()
                ),
            )
            .setting("Name a zone of fixed offset, for example \"UTC\"."),
        );
    }
}

fn created_at_type(column: &Column, config: &Config) -> Option<(String, String)> {
    let name = config.table.quoted();
    let quoted = quote_ident(&column.name);
    match (column.type_name.as_str(), &config.time_zone) {
        (WITH_ZONE, None) | (WITHOUT_ZONE, Some(_)) => None,
        (WITH_ZONE, Some(_)) => Some((
            format!("{}.{} is timestamptz, which has no zone of its own: remove time_zone", config.table, column.name),
            "-- remove [relay.source.stream] time_zone".to_owned(),
        )),
        (WITHOUT_ZONE, None) => Some((
            format!(
                "{}.{} is timestamp without time zone: state its zone in [relay.source.stream] time_zone, or change it",
                config.table, column.name
            ),
            format!("ALTER TABLE {name} ALTER COLUMN {quoted} TYPE timestamptz USING {quoted} AT TIME ZONE 'UTC';"),
        )),
        (other, _) => Some((
            format!("{}.{} is {other}; it must be timestamptz", config.table, column.name),
            format!("ALTER TABLE {name} ALTER COLUMN {quoted} TYPE timestamptz;"),
        )),
    }
}

fn indexes(table: &Table, config: &Config, findings: &mut Vec<Finding>) {
    let name = config.table.quoted();
    let pair = [config.created_at.as_str(), config.id.as_str()];
    let list = format!("({}, {})", quote_ident(pair[0]), quote_ident(pair[1]));
    let concurrently = if table.kind == "p" { "" } else { "CONCURRENTLY " };
    if !table.unique_within(pair) {
        findings.push(
            Finding::new(
                Level::Error,
                "not_unique",
                format!(
                    "no unique index on {} covers only {list}: rows with equal values would be skipped silently",
                    config.table
                ),
            )
            .sql(format!("CREATE UNIQUE INDEX {concurrently}ON {name} {list};")),
        );
    }
    if !table.ordered_by(pair) {
        findings.push(
            Finding::new(
                Level::Warn,
                "index_missing",
                format!("{} has no index on {list}: every turn sorts what is left of the table", config.table),
            )
            .sql(format!("CREATE INDEX {concurrently}ON {name} {list};")),
        );
    }
    if table.column(&config.id).is_some_and(|column| column.type_name == "uuid") {
        findings.push(
            Finding::new(
                Level::Warn,
                "tie_break_random",
                format!("{}.{} is a uuid: rows of one instant come in the order of their ids, which is random unless they grow with time", config.table, config.id),
            )
            .setting("Use UUIDv7 or a bigint identity as the id."),
        );
    }
}

fn rule(table: &Table, config: &Config, findings: &mut Vec<Finding>) -> (Rule, bool) {
    let with_zone = table.column(&config.created_at).is_some_and(|column| column.type_name == WITH_ZONE);
    let weakest = table.stamps.iter().min_by_key(|stamp| sure(stamp, config, with_zone));
    let level = weakest.map_or(Sure::Unknown, |stamp| sure(stamp, config, with_zone));
    let needed = if level >= Sure::DefaultOnly { Rule::Writers } else { Rule::Transactions };
    let rule = match config.horizon {
        RuleChoice::Auto => needed,
        RuleChoice::Writers => Rule::Writers,
        RuleChoice::Transactions => Rule::Transactions,
        RuleChoice::Window => Rule::Window,
    };
    if rule == Rule::Window {
        findings.push(
            Finding::new(
                Level::Warn,
                "horizon_window",
                "horizon = \"window\" loses rows that commit later than the window",
            )
            .setting("Set horizon = \"auto\"."),
        );
        return (rule, false);
    }
    if rule == Rule::Writers && needed == Rule::Transactions {
        findings.push(
            Finding::new(
                Level::Error,
                "horizon_too_weak",
                format!("horizon = \"writers\" loses rows here: {}", describe(weakest, level, config)),
            )
            .setting("Set horizon = \"auto\"."),
        );
        return (rule, false);
    }
    findings.push(certainty(weakest, level, config));
    (rule, level == Sure::Proven)
}

fn certainty(weakest: Option<&Stamp>, level: Sure, config: &Config) -> Finding {
    let text = describe(weakest, level, config);
    let table = config.table.quoted();
    let column = quote_ident(&config.created_at);
    let close = if config.created_at == "created_at" && config.time_zone.is_none() {
        format!(
            "CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF {column} ON {table} FOR EACH ROW EXECUTE FUNCTION \
             outbox.stamp_created_at();"
        )
    } else {
        format!("REVOKE INSERT, UPDATE ON {table} FROM the_writers; -- then GRANT INSERT (every column but {column})")
    };
    match level {
        Sure::Proven => Finding::new(Level::Ok, "created_at_proven", text),
        Sure::DefaultOnly => Finding::new(Level::Warn, "created_at_unproven", text).sql(close),
        Sure::TransactionStart | Sure::Unknown => {
            let default = match &config.time_zone {
                None => "clock_timestamp()".to_owned(),
                Some(zone) => format!("(clock_timestamp() AT TIME ZONE {})", quote_literal(zone)),
            };
            Finding::new(Level::Warn, "created_at_unproven", text)
                .sql(format!("ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT {default}; {close}"))
        }
    }
}

fn describe(weakest: Option<&Stamp>, level: Sure, config: &Config) -> String {
    let relation = weakest.map_or_else(|| config.table.to_string(), |stamp| stamp.name.clone());
    let column = &config.created_at;
    let default = weakest.and_then(|stamp| stamp.default.as_deref()).unwrap_or("none");
    match level {
        Sure::Proven => format!("{relation}.{column} is always the clock at the insert: rule writers, proven"),
        Sure::DefaultOnly => {
            format!(
                "{relation}.{column} has the right default, but writers could send a value of their own: rule writers, proven for rows that use the default"
            )
        }
        Sure::TransactionStart => format!(
            "{relation}.{column} is the transaction's start (default {default}): rule transactions, any open transaction of \
             the database holds it back"
        ),
        Sure::Unknown => format!(
            "{relation}.{column} is set by the application or by an expression that is not known (default {default}): rule \
             transactions, unproven"
        ),
    }
}

fn sure(stamp: &Stamp, config: &Config, with_zone: bool) -> Sure {
    if stamp.trigger && with_zone {
        return Sure::Proven;
    }
    match stamp.default.as_deref().map(|default| source_of(default, config)) {
        Some(Clock::Now) if stamp.writable || stamp.other_trigger => Sure::DefaultOnly,
        Some(Clock::Now) => Sure::Proven,
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
fn source_of(default: &str, config: &Config) -> Clock {
    let mut text = default.trim().to_owned();
    // A column of lower precision wraps the default in a cast.
    if let Some((inner, cast)) = text.rsplit_once("::timestamp") {
        let precision_only = cast.starts_with('(');
        let same = if config.time_zone.is_some() {
            cast.ends_with("without time zone")
        } else {
            cast.ends_with("with time zone")
        };
        if !precision_only || !same {
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
        other if other.starts_with("CURRENT_TIMESTAMP(") => Clock::TransactionStart,
        _ => Clock::Unknown,
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

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
