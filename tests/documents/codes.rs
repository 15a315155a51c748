//! Error codes and findings of `check` are listed in docs/ERRORS.md, and in no other document.
//!
//! That its tables are those of the code is compared by tests/it/errors.rs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{documents, files, first_column, read, section};

const ERRORS: &str = "docs/ERRORS.md";
const CHECK: &str = "Findings of `check`";

/// The codes of findings in the program's source, without those that only say that all is well.
fn findings() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files(Path::new("src"), "rs") {
        let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        if parts.iter().any(|part| part.contains("tests")) {
            continue;
        }
        let text: String = read(&path).split("#[cfg(test)]").next().unwrap_or_default().split_whitespace().collect();
        for maker in ["Level::Error,\"", "Level::Warn,\"", "refuse(\""] {
            let codes = text.split(maker).skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(codes.map(str::to_owned));
        }
    }
    found
}

// Guarantee: observe.codes
#[test]
fn every_finding_of_check_is_documented() {
    let found = findings();
    assert!(found.len() > 25, "only {} findings were found: are they created in another way now?", found.len());
    let errors = read(ERRORS);
    let listed = first_column(section(&errors, CHECK));
    let observed = read("docs/CURSORS.md");
    let documented = |code: &str| {
        listed.contains(&code) || section(&observed, "Measuring the achievable lag").contains(&format!("`{code}`"))
    };
    let missing: Vec<_> = found.iter().filter(|code| !documented(code)).collect();
    assert!(missing.is_empty(), "not under {CHECK} in {ERRORS}: {missing:?}");
}

/// The words of first cells that consist of words in backticks alone, as the first cell of a table of codes does.
fn explained(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let only_code = |row: &&str| {
        let cell = row.split('|').nth(1).unwrap_or_default();
        cell.split('`').step_by(2).all(|outside| outside.trim().trim_matches(',').is_empty())
    };
    rows.filter(only_code).flat_map(first_column).collect()
}

// Guarantee: observe.codes
#[test]
fn codes_are_listed_in_one_document() {
    let errors = read(ERRORS);
    let codes: BTreeSet<&str> = explained(&errors).into_iter().filter(|word| word.contains('_')).collect();
    assert!(codes.len() > 250, "only {} codes were found: is {ERRORS} written in another way now?", codes.len());
    // A state of `status` and columns of outbox.schedule, which have the name of a code.
    let others = ["clock_regression", "time_zone", "starts_at"];
    for file in documents().iter().filter(|file| !file.ends_with("docs/ERRORS.md")) {
        let text = read(file);
        let again: Vec<_> =
            explained(&text).into_iter().filter(|word| codes.contains(word) && !others.contains(word)).collect();
        assert!(again.is_empty(), "{} explains {again:?}: {ERRORS} does", file.display());
    }
}
