//! SQL of more than one line stands in `.sql` files beside its module, where PostgreSQL plans it (`tests/it/statements.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::literals::literals;
use crate::sources;

/// What only statements say.
const SQL: &[&str] = &[
    " FROM ",
    "WHERE ",
    "INSERT INTO ",
    "DELETE FROM ",
    "UPDATE outbox.",
    "RETURNING ",
    " JOIN ",
    "SET LOCAL ",
    "CREATE FUNCTION ",
    "SET CONSTRAINTS ",
    "RESET ",
    "CREATE OR REPLACE ",
    "CREATE TRIGGER ",
];

/// How many literals of more than one line each file has that cannot move, and why.
const ASSEMBLED: &[(&str, usize, &str)] = &[
    ("src/cli/cursor/unfinished.rs", 1, "a hint with the names of what it is about"),
    ("src/cursor/liveness.rs", 1, "of columns and a condition that its callers choose"),
    ("src/cursor/lock.rs", 1, "one of two conditions"),
    ("src/cursor/replicas.rs", 6, "of the condition of liveness, and sent as one message without parameters"),
    ("src/cursor/settle.rs", 1, "of `instant_sql!`, which others share"),
    ("src/cursor/standing.rs", 1, "sent as one message without parameters, behind a lock"),
    ("src/cursor/unknown.rs", 4, "of `instant_sql!`, and over one of two lists of rows"),
    ("src/database/pool.rs", 1, "several commands, of the kind that PostgreSQL does not plan"),
    ("src/jobs/journal.rs", 2, "one list of columns for two statements"),
    ("src/jobs/ledger.rs", 1, "a hint: the operator runs it"),
    ("src/jobs/watches.rs", 1, "of the condition of liveness"),
    ("src/migrate/notify.rs", 1, "creates a trigger of the table that the operator names"),
    ("src/migrate/rights.rs", 3, "one statement for four kinds of objects"),
    ("src/relay/queue/requests/prepare.rs", 1, "a hint: the operator runs it"),
    ("src/relay/setup/renamed.rs", 1, "of the condition of liveness"),
    ("src/sink/sql/publication.rs", 2, "several commands, of the kind that PostgreSQL does not plan"),
    ("src/source/action_query.rs", 3, "about the query that the configuration has"),
    ("src/source/judge/gap.rs", 1, "a hint: the owner of the table runs it"),
    ("src/source/length.rs", 1, "of the configured table and columns"),
    ("src/source/pending/bounded.rs", 1, "of the configured table and columns"),
    ("src/source/pending/lanes.rs", 4, "of the configured table and columns"),
    ("src/source/pending/marks.rs", 6, "of the configured table and columns"),
    ("src/source/pending/redrive.rs", 6, "of the configured table and columns"),
    ("src/source/pending/sql.rs", 8, "of the configured table and columns"),
    ("src/source/requests.rs", 2, "of the configured fields, and one of several conditions"),
    ("src/source/requests/lanes.rs", 3, "of the configured fields and lane"),
    ("src/source/shape/instants.rs", 1, "of the configured table and columns"),
    ("src/source/shard.rs", 1, "of the configured table and columns"),
    ("src/source/sweep.rs", 5, "of the configured table and columns"),
    ("src/source/sweep/to_come.rs", 1, "of the configured table and columns"),
    ("src/source/table.rs", 1, "of the configured time zone"),
];

/// Code without its unit tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The first line of each literal of more than one line that is SQL, with its number.
fn statements(text: &str) -> Vec<(usize, String)> {
    let code = code(text);
    let long = literals(code).into_iter().filter(|literal| {
        let text = &code[literal.clone()];
        text.contains('\n') && SQL.iter().any(|word| text.contains(word))
    });
    let place = |literal: std::ops::Range<usize>| {
        let first = code[literal.clone()].lines().next().unwrap_or_default();
        (code[..literal.start].matches('\n').count() + 1, first.to_owned())
    };
    long.map(place).collect()
}

/// What is wrong with a file, by how many literals it may have.
fn complaints(path: &str, text: &str, allowed: usize) -> Vec<String> {
    let found = statements(text);
    if found.len() == allowed {
        return Vec::new();
    }
    let mut wrong = vec![format!("{path}: {} statements of more than one line, {allowed} are listed", found.len())];
    wrong.extend(found.iter().map(|(line, first)| format!("  {path}:{line}: {first}")));
    wrong
}

#[test]
fn long_statements_stand_in_files_of_their_own() {
    let mut allowed: BTreeMap<&str, usize> = ASSEMBLED.iter().map(|(path, count, _)| (*path, *count)).collect();
    let mut wrong = Vec::new();
    for path in sources(Path::new("src")) {
        let path = path.to_string_lossy().into_owned();
        if path.contains("/tests/") || path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        wrong.extend(complaints(&path, &text, allowed.remove(path.as_str()).unwrap_or_default()));
    }
    wrong.extend(allowed.keys().map(|path| format!("{path} is listed, but is not there")));
    assert!(wrong.is_empty(), "move each to a .sql file beside its module and include_str! it:\n{}", wrong.join("\n"));
}

#[test]
fn planted_statement_is_found_and_one_less_is_noticed() {
    let planted = "const GONE: &str = \"DELETE FROM outbox.claim WHERE relay = $1 \\\n     AND key = $2\";\n";
    assert_eq!(
        complaints("planted.rs", planted, 0),
        [
            "planted.rs: 1 statements of more than one line, 0 are listed",
            "  planted.rs:1: \"DELETE FROM outbox.claim WHERE relay = $1 \\"
        ]
    );
    assert_eq!(complaints("planted.rs", planted, 2).len(), 2, "the list is no longer true");
    assert!(complaints("planted.rs", planted, 1).is_empty());
    let others =
        "let hint = \"Grant it SELECT, \\\n  then run it again\"; // DELETE FROM a\nlet one = \"DELETE FROM a\";";
    assert_eq!(statements(others), []);
}
