//! Sinks of SQL with one mistake each; see [`super::bad`].

use super::*;
use crate::relay::{Guarantee, Start};

const STREAM: &str = "[relay.source.stream]\ntable = \"a.b\"";
const GOOD_SQL: &str = "statement = \"SELECT app.f($1, $2)\"\nparameters = [\"id\", \"at\"]\n";

fn sql(more: &str, source: &str, sink: &str) -> String {
    format!("{GOOD}[[relay]]\nname = \"model\"\n{more}\n{source}\n[relay.sink.sql]\n{sink}")
}

#[test]
fn sql_sinks() {
    for (from, to, key, what) in [
        ("statement = \"SELECT app.f($1, $2)\"", "", "statement", "missing"),
        ("SELECT app.f($1, $2)", "", "statement", "empty"),
        ("SELECT app.f($1, $2)", "COMMIT", "statement", "not a statement that can run in the cursor's"),
        ("SELECT app.f($1, $2)", "-- SELECT\\nSET a = $1", "statement", "not a statement that can run in the cursor's"),
        ("SELECT app.f($1, $2)", "DO $$ $$", "statement", "not a statement that can run in the cursor's"),
        ("$2)", "$2); COMMIT", "statement", "more than one statement"),
        ("$2)", "$3)", "parameters", "the statement has $3, and 2 columns are named"),
        ("$2)", "$0, $2)", "parameters", "the statement has $0, and 2 columns are named"),
        ("$2)", "$1)", "parameters", "2 columns are named, and the statement has no $2"),
        ("parameters = [\"id\", \"at\"]", "", "statement", "the statement has $1, and 0 columns are named"),
        ("\"id\", \"at\"", "", "parameters", "names no column"),
        ("\"id\", \"at\"", "\"id\", \"id\"", "parameters", "names \"id\" twice"),
        ("parameters", "each = \"turn\"\nparameters", "each", "not a word that is known"),
        ("parameters", "timeout = \"1s\"\nparameters", "timeout", "unknown key here"),
    ] {
        let text = sql("", STREAM, &GOOD_SQL.replacen(from, to, 1));
        let problems = parse(&text).expect_err(to);
        let [one] = problems.list() else { panic!("{to}: {problems}") };
        assert_eq!(one.key, format!("relay[model].sink.sql.{key}"), "{to}");
        assert!(one.what.starts_with(what) && !one.fix.is_empty(), "{to}: {}", one.what);
    }
    for good in ["insert into a.b values ($1, $2);", "/* a */ (VALUES ($1, $2))", "CALL a.b($2, $1)", "MERGE $1 $2"] {
        let config = parse(&sql("", STREAM, &GOOD_SQL.replacen("SELECT app.f($1, $2)", good, 1))).expect(good);
        let relay = config.relays.last().expect("a relay");
        assert_eq!((relay.guarantee, relay.start), (Guarantee::InDatabase, Start::Beginning));
        assert_eq!(parse(&config.redacted()).expect("valid"), config);
    }
}

#[test]
fn a_statement_has_its_own_guarantee_and_is_for_streams() {
    assert!(parse(&sql("guarantee = \"in_database\"", STREAM, GOOD_SQL)).is_ok());
    for other in ["at_least_once", "at_most_once"] {
        let text = sql(&format!("guarantee = \"{other}\""), STREAM, GOOD_SQL);
        let told = parse(&text).expect_err(other).to_string();
        assert!(told.contains(&format!("relay[model].guarantee = \"{other}\": a statement and the advance")), "{told}");
        assert!(told.contains("fix: write \"in_database\", or remove the key"), "{told}");
    }
    let due = "[relay.source.pending]\ntable = \"a.b\"\nkey = [\"id\"]\ndue = \"at\"";
    let due = sql("", due, GOOD_SQL);
    let problems = parse(&due).expect_err("due work");
    let [one] = problems.list() else { panic!("{problems}") };
    assert_eq!(one.key, "relay[model].sink.sql");
    assert_eq!(one.what, "not available with [relay.source.pending]");
}
