//! `[relay.source.schedule.queries.NAME]`: what the actions of a schedule may ask the database.

use std::collections::BTreeMap;
use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use super::show::{TomlLines, quote};
use super::tree::{Node, TomlTable, Value};
use super::value;
use crate::sink::sql::Outline;
use crate::source::action_query::{Condition, Query};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_MAX_ROWS: u64 = 1000;
/// What reads and fits into a FROM clause.
const FIRST_WORDS: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];

/// Reads the queries below `queries` of that section, by their names.
pub(super) fn read(section: &Section<'_>) -> BTreeMap<String, Query> {
    let named = section.named_sections("queries");
    named.into_iter().filter_map(|(name, query)| Some((name.to_owned(), read_query(section, name, &query)?))).collect()
}

fn read_query(parent: &Section<'_>, name: &str, section: &Section<'_>) -> Option<Query> {
    if !value::is_name(name) {
        let fix = "write 1 to 100 letters, digits, dots, underscores or hyphens";
        parent.problem("queries", Wrong::new(format!("{name:?} is not a name of a query"), fix));
    }
    let timeout = value::duration(Duration::from_millis(10)..=Duration::from_secs(600));
    let timeout = section.read("timeout", timeout).unwrap_or(DEFAULT_TIMEOUT);
    let max_rows = section.read("max_rows", value::integer(1..=100_000)).unwrap_or(DEFAULT_MAX_ROWS);
    let when = section.read("when", when);
    let fix = "write for example \"SELECT count(*) AS open FROM orders WHERE state = 'open'\"";
    let sql = section.require("sql", value::parsed(select), fix)?;
    Some(Query { name: name.to_owned(), sql, timeout, when, max_rows: usize::try_from(max_rows).unwrap_or(usize::MAX) })
}

fn select(text: &str) -> Result<String, Wrong> {
    let outline = Outline::of(text);
    if !FIRST_WORDS.contains(&outline.first_word.as_str()) {
        return Err(Wrong::new("not a query", format!("begin it with one of {}", FIRST_WORDS.join(", "))));
    }
    if outline.several {
        return Err(Wrong::new("more than one statement", "make them one by WITH, or two queries"));
    }
    match outline.parameters.iter().find(|number| **number != 1) {
        Some(number) => {
            let fix = "write $1, which is the action's payload as jsonb, for example $1->>'region'";
            Err(Wrong::new(format!("the query has ${number}"), fix))
        }
        None => Ok(text.to_owned()),
    }
}

fn when(node: &Node) -> Result<Condition, Wrong> {
    let fix = "write \"rows\", { column = \"n\", above = 10 } or { column = \"n\", below = 3 }";
    let wrong = |what: String| Wrong::new(what, fix);
    let table = match &node.value {
        Value::Text(text) if text == "rows" => return Ok(Condition::Rows),
        Value::Table(table) => table,
        _ => return Err(wrong("neither \"rows\" nor a bound of a column".to_owned())),
    };
    if let Some(stranger) = table.keys().find(|key| !["column", "above", "below"].contains(&key.as_str())) {
        return Err(wrong(format!("{stranger} is not known here")));
    }
    let Some((_, column)) = table.get("column") else { return Err(wrong("names no column".to_owned())) };
    let column = value::column(column)?;
    match (bound(table, "above")?, bound(table, "below")?) {
        (Some(value), None) => Ok(Condition::Above { column, value }),
        (None, Some(value)) => Ok(Condition::Below { column, value }),
        (None, None) => Err(wrong("has no bound".to_owned())),
        (Some(_), Some(_)) => Err(wrong("has two bounds".to_owned())),
    }
}

fn bound(table: &TomlTable, key: &str) -> Result<Option<f64>, Wrong> {
    let Some((_, node)) = table.get(key) else { return Ok(None) };
    let number = match &node.value {
        Value::Float(number) => Some(*number),
        Value::Integer(number) => number.to_string().parse().ok(),
        _ => None,
    };
    let number = number.filter(|number| number.is_finite());
    number.map(Some).ok_or_else(|| Wrong::new(format!("{key} is no number"), format!("write for example {key} = 10")))
}

/// As they were understood.
pub(super) fn write(lines: &mut TomlLines, queries: &BTreeMap<String, Query>) {
    for (name, query) in queries {
        lines.section(&format!("[relay.source.schedule.queries.{}]", quote(name)));
        lines.text("sql", &query.sql);
        lines.duration("timeout", query.timeout);
        match &query.when {
            None => {}
            Some(Condition::Rows) => lines.text("when", "rows"),
            Some(Condition::Above { column, value }) => {
                lines.raw("when", format!("{{ column = {}, above = {value:?} }}", quote(column)));
            }
            Some(Condition::Below { column, value }) => {
                lines.raw("when", format!("{{ column = {}, below = {value:?} }}", quote(column)));
            }
        }
        lines.raw("max_rows", query.max_rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::{Problems, Report};
    use crate::config::tree;

    fn parse(text: &str) -> Result<BTreeMap<String, Query>, String> {
        let report = Report::default();
        let document = tree::parse(text, &report);
        let queries = read(&Section::named(&report, "relay.source.schedule", &document.root));
        if report.is_empty() { Ok(queries) } else { Err(Problems::new(None, report.into_list()).to_string()) }
    }

    #[test]
    fn a_query_has_defaults_and_is_shown_as_it_was_understood() {
        let text = "[queries.open]\nsql = \"SELECT 1 AS n\"\n[queries.\"b.c\"]\nsql = \"TABLE t; \"\ntimeout = \"1m\"\n\
                    max_rows = 5\nwhen = { column = \"n\", below = -3 }\n";
        let queries = parse(text).expect("valid");
        let open = Query {
            name: "open".to_owned(),
            sql: "SELECT 1 AS n".to_owned(),
            timeout: DEFAULT_TIMEOUT,
            when: None,
            max_rows: 1000,
        };
        assert_eq!(queries["open"], open);
        assert_eq!(queries["b.c"].when, Some(Condition::Below { column: "n".to_owned(), value: -3.0 }));
        let mut lines = TomlLines::default();
        write(&mut lines, &queries);
        let shown = lines.0.replace("[relay.source.schedule.", "[");
        assert_eq!(parse(&shown).expect("valid"), queries, "{shown}");
    }

    #[test]
    fn conditions_are_read() {
        for (text, condition) in [
            ("\"rows\"", Condition::Rows),
            ("{ column = \"n\", above = 10 }", Condition::Above { column: "n".to_owned(), value: 10.0 }),
            ("{ column = \"n\", above = 2.5 }", Condition::Above { column: "n".to_owned(), value: 2.5 }),
        ] {
            let queries = parse(&format!("[queries.q]\nsql = \"SELECT 1\"\nwhen = {text}\n")).expect(text);
            assert_eq!(queries["q"].when, Some(condition));
        }
    }

    #[test]
    fn what_is_no_query_is_told() {
        for (keys, told) in [
            ("", "queries.q.sql: missing"),
            ("sql = \"DELETE FROM t\"", "not a query"),
            ("sql = \"SELECT 1; SELECT 2\"", "more than one statement"),
            ("sql = \"SELECT $2\"", "the query has $2"),
            ("sql = \"SELECT 1\"\ntimeout = \"11m\"", "out of bounds"),
            ("sql = \"SELECT 1\"\nmax_rows = 0", "out of bounds"),
            ("sql = \"SELECT 1\"\nwhen = \"always\"", "neither \"rows\""),
            ("sql = \"SELECT 1\"\nwhen = { above = 1 }", "names no column"),
            ("sql = \"SELECT 1\"\nwhen = { column = \"n\" }", "has no bound"),
            ("sql = \"SELECT 1\"\nwhen = { column = \"n\", above = 1, below = 2 }", "has two bounds"),
            ("sql = \"SELECT 1\"\nwhen = { column = \"n\", above = \"1\" }", "above is no number"),
            ("sql = \"SELECT 1\"\nwhen = { column = \"n\", over = 1 }", "over is not known here"),
            ("query = \"SELECT 1\"", "unknown key"),
        ] {
            let problems = parse(&format!("[queries.q]\n{keys}\n")).expect_err(keys);
            assert!(problems.contains(told), "{problems}");
        }
        assert!(parse("[queries.\"a b\"]\nsql = \"SELECT 1\"").expect_err("no name").contains("not a name of a query"));
    }
}
