//! The runbook has a line for whatever halts a relay and for every finding of `check`; the documents' links lead
//! somewhere, and the tests that they name exist.
//!
//! What halts stands in docs/ERRORS.md, which tests/it/errors.rs holds to the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::examples::documents;

const RUNBOOK: &str = "docs/OPERATIONS.md";

fn read(file: impl AsRef<Path>) -> String {
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.as_ref().display()))
}

/// The text of a section, up to the next heading of its level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The code words in the first column of all tables of a text.
fn first_column(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(|word| !word.contains(' ')).collect()
}

/// Whether a word of the runbook means a code: `…` stands for anything, `xx` for two digits.
fn means(word: &str, code: &str) -> bool {
    if let Some(begin) = word.strip_suffix("xx") {
        let digits = code.strip_prefix(begin).unwrap_or_default();
        return digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    }
    let mut parts = word.split('…');
    let Some(mut rest) = code.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = if part.is_empty() { "" } else { &rest[at + part.len()..] };
    }
    rest.is_empty()
}

/// The codes of docs/ERRORS.md that stop a relay.
fn halting(errors: &str) -> Vec<String> {
    let stops = |row: &&str| row.contains(" | poison |") || row.contains(" | fatal |");
    let rows = errors.lines().filter(|row| row.starts_with("| `")).filter(stops);
    let codes = rows.flat_map(|row| first_column(row));
    let state = |code: &str| code.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    codes
        .filter(|code| !["poison", "fatal", "retry"].contains(code))
        .map(|code| if state(code) { format!("postgres_{code}") } else { code.to_owned() })
        .collect()
}

#[test]
fn every_code_that_halts_has_its_line_in_the_runbook_and_no_line_is_about_nothing() {
    let (runbook, errors) = (read(RUNBOOK), read("docs/ERRORS.md"));
    let words = first_column(section(&runbook, "Halted"));
    let codes = halting(&errors);
    assert!(codes.len() > 80, "only {} codes were found: is the document written in another way?", codes.len());
    let missing: Vec<_> = codes.iter().filter(|code| !words.iter().any(|word| means(word, code))).collect();
    assert!(missing.is_empty(), "no line under Halted in {RUNBOOK}: {missing:?}");
    let checks = first_column(section(&runbook, "Reading check"));
    let vague = |word: &&str| word.ends_with("_…") && word.matches('_').count() == 1;
    assert!(!words.iter().any(vague), "a word under Halted stands for everything of its kind");
    let known = |word: &str| codes.iter().any(|code| means(word, code)) || checks.contains(&word);
    let idle: Vec<_> = words.into_iter().filter(|word| !known(word)).collect();
    assert!(idle.is_empty(), "these stand under Halted in {RUNBOOK} and halt nothing: {idle:?}");
}

/// The codes of findings in the program's source, those that are only ever well left out.
fn findings(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("the source is readable") {
        let path = entry.expect("entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.contains("tests") {
            continue;
        }
        if path.is_dir() {
            findings(&path, found);
            continue;
        }
        let text: String = read(&path).split("#[cfg(test)]").next().unwrap_or_default().split_whitespace().collect();
        for maker in ["Level::Error,\"", "Level::Warn,\"", "refuse(\""] {
            let codes = text.split(maker).skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(codes.map(str::to_owned));
        }
    }
}

#[test]
fn every_finding_of_check_has_its_line_in_the_runbook() {
    let mut found = BTreeSet::new();
    findings(Path::new("src"), &mut found);
    assert!(found.len() > 25, "only {} findings were found: are they made in another way now?", found.len());
    let runbook = read(RUNBOOK);
    let words = first_column(section(&runbook, "Reading check"));
    let observed = section(&runbook, "Operator verbs");
    let there = |code: &str| words.contains(&code) || observed.contains(&format!("`{code}`"));
    let missing: Vec<_> = found.iter().filter(|code| !there(code)).collect();
    assert!(missing.is_empty(), "no line under Reading check in {RUNBOOK}: {missing:?}");
}

/// The anchors of a document's headings: small letters, blanks as hyphens, other signs left out.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut code = false;
    let headings = text.lines().filter(|line| {
        code ^= line.starts_with("```");
        !code && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|sign| sign.is_alphanumeric() || "-_ ".contains(*sign));
        kept.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_the_documents_leads_to_a_file_and_a_section() {
    let mut files = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| Path::new(name).to_owned()).to_vec();
    documents(Path::new("docs"), &mut files);
    let mut count = 0;
    for file in files {
        let text = read(&file);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.clone() } else { file.parent().expect("a folder").join(path) };
            assert!(target.exists(), "{}: {link} leads to no file", file.display());
            let there = anchor.is_empty() || anchors(&read(&target)).contains(anchor);
            assert!(there, "{}: {link} leads to no section", file.display());
        }
    }
    assert!(count > 60, "only {count} links were found");
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let mut files = vec![Path::new("README.md").to_owned()];
    documents(Path::new("docs"), &mut files);
    let (mut count, mut missing) = (0, Vec::new());
    for file in files {
        let text = read(&file);
        for named in text.split('`').skip(1).step_by(2) {
            let Some((path, name)) = named.split_once(".rs: ") else { continue };
            if named == "file.rs: name" || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                continue;
            }
            count += 1;
            let folder =
                if ["src/", "tests/", "testkit/"].iter().any(|root| path.starts_with(root)) { "" } else { "tests/it/" };
            let source = fs::read_to_string(format!("{folder}{path}.rs")).unwrap_or_default();
            if ![format!("fn {name}("), format!("        {name},")].iter().any(|form| source.contains(form.as_str())) {
                missing.push(format!("{}: {named}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
    assert!(count > 150, "only {count} tests are named");
}

#[test]
fn a_word_of_the_runbook_means_what_it_looks_like() {
    assert!(means("http_4xx", "http_404") && !means("http_4xx", "http_500") && !means("http_4xx", "http_4040"));
    assert!(means("kafka_…authorization_failed", "kafka_topic_authorization_failed"));
    assert!(means("twilio_216…", "twilio_21610") && !means("twilio_216…", "twilio_21211"));
    assert!(means("null_key", "null_key") && !means("null_key", "null_keys"));
}
