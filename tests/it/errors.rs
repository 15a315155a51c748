//! docs/ERRORS.md is true: its tables are those of the code, and no code of a failure is missing.
//!
//! After a change of the code's tables: `WRITE_DOCS=1 cargo test --test it errors::`.

use std::collections::BTreeSet;
use std::path::Path;

use outbox_relay::database::sqlstate;
use outbox_relay::sink::{KnownError, email, http, kafka, sms, sql};

const DOCUMENT: &str = "docs/ERRORS.md";

/// The table of a section, without what is before and after it.
fn table<'a>(text: &'a str, section: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let section = rest.split("\n## ").next().unwrap();
    let begin = section.find("\n| ").expect("a table") + 1;
    let end = section[begin..].find("\n\n").map_or(section.len(), |end| begin + end + 1);
    &section[begin..end]
}

fn of_sink(known: &[KnownError]) -> String {
    let rows = known.iter().map(|line| {
        format!("| {} | {} | {} | {} |\n", line.codes, line.class.as_str(), line.phase.as_str(), line.hint)
    });
    format!("| code | class | phase | what to do |\n|---|---|---|---|\n{}", rows.collect::<String>())
}

fn of_postgres() -> String {
    let rows = sqlstate::known_errors().map(|line| {
        let plain = |state: &str| state.len() != 2 && state.len() != 5;
        let states =
            line.states.iter().map(|state| if plain(state) { (*state).to_owned() } else { format!("`{state}`") });
        let states = states.collect::<Vec<_>>().join(", ");
        format!("| {states} | {} | {} | {} |\n", line.about, line.cure.as_str(), line.hint)
    });
    format!("| SQLSTATE | about | class | what to do |\n|---|---|---|---|\n{}", rows.collect::<String>())
}

// Guarantee: observe.codes
#[test]
fn the_tables_of_the_document_are_those_of_the_code() {
    let mut text = std::fs::read_to_string(DOCUMENT).unwrap();
    for (section, expected) in [
        ("Kafka", of_sink(&kafka::known_errors())),
        ("HTTP", of_sink(&http::known_errors())),
        ("SMS by Twilio", of_sink(&sms::known_errors())),
        ("SQL", of_sink(&sql::known_errors())),
        ("Email", of_sink(&email::known_errors())),
        ("PostgreSQL", of_postgres()),
    ] {
        let found = table(&text, section).to_owned();
        if std::env::var_os("WRITE_DOCS").is_some() {
            let (before, rest) = text.split_once(&format!("\n## {section}\n")).unwrap();
            text = format!("{before}\n## {section}\n{}", rest.replacen(&found, &expected, 1));
            std::fs::write(DOCUMENT, &text).unwrap();
        } else {
            assert_eq!(found, expected, "{section}: `WRITE_DOCS=1 cargo test --test it errors::` writes it");
        }
    }
}

/// The program's source without white space, tests left out.
fn source(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            source(&path, found);
        } else if path.is_file() && !name.contains("tests") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(text.split("#[cfg(test)]").next().unwrap().split_whitespace());
        }
    }
}

// Guarantee: observe.codes
#[test]
fn every_code_that_the_program_gives_itself_is_documented_and_no_other() {
    let mut program = String::new();
    source(Path::new("src"), &mut program);
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    let documented: BTreeSet<&str> = table(&text, "The relay's own")
        .lines()
        .skip(2)
        .flat_map(|row| row.split('|').nth(1).unwrap().split(','))
        .map(|code| code.trim().trim_matches('`'))
        .collect();
    for code in &documented {
        assert!(program.contains(&format!("\"{code}\"")), "{code} is documented and does not exist");
    }
    let makers = [
        "code:\"",
        "::failed(\"",
        "poison(\"",
        "::wrong(\"",
        "of(Class::Poison,\"",
        "of(Class::Fatal,\"",
        "of(Class::Retry,\"",
    ];
    let given =
        makers.iter().flat_map(|maker| program.split(maker).skip(1)).map(|rest| rest.split('"').next().unwrap());
    let mut number = 0;
    for code in given {
        number += 1;
        assert!(documented.contains(code), "{code} is not documented");
    }
    assert!(number > 12, "only {number} codes were found: are they made in another way now?");
}
