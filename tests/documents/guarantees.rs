//! docs/GUARANTEES.md is generated: the promises from tests/documents/guarantees.md, their tests from the comments beside them.
//!
//! `// Guarantee: ID` above a test's attributes names the promise that it verifies; `// Guarantee: ID (negative control)` says
//! that it runs the same script without the rule. A row of guarantees.md is `| ID | promise |`, with other evidence than tests of
//! this tree, or `No test yet`, in a third cell.
//!
//! After a change of either: `WRITE_DOCS=1 cargo test --test documents guarantees`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::{files, read};

const SOURCE: &str = "tests/documents/guarantees.md";
const DOCUMENT: &str = "docs/GUARANTEES.md";
const NOTE: &str = "<!-- Generated from tests/documents/guarantees.md and the tests: \
                    `WRITE_DOCS=1 cargo test --test documents guarantees` -->\n\n";
const MARK: &str = "// Guarantee: ";
const CONTROL: &str = " (negative control)";
const NO_TEST: &str = "No test yet";

/// The tests of one promise, as the document names them.
#[derive(Default)]
struct Tests {
    verify: Vec<String>,
    control: Vec<String>,
}

/// The test that follows a comment: only comments and attributes are between the two, one of which makes it a test that runs.
/// A macro that takes names of tests has the comment above the name.
fn test_below<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut runs = false;
    for line in lines.iter().map(|line| line.trim()) {
        if let Some((_, rest)) = line.split_once("fn ") {
            return rest.split('(').next().filter(|_| runs);
        }
        let plain = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        let name = line.strip_suffix(',').map(|path| path.rsplit("::").next().unwrap_or(path));
        let name = name.filter(|name| name.bytes().all(plain));
        if name.is_some() {
            return name;
        }
        if line.starts_with("#[ignore") || !(line.starts_with("//") || line.starts_with("#[")) {
            return None;
        }
        runs |= line == "#[test]" || line.starts_with("#[tokio::test");
    }
    None
}

/// The comments of all files, by promise; a comment above something else than a test is an error.
fn comments(files: &[(String, String)], errors: &mut Vec<String>) -> BTreeMap<String, Tests> {
    let mut found: BTreeMap<String, Tests> = BTreeMap::new();
    for (path, text) in files {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(id) = line.trim().strip_prefix(MARK) else { continue };
            let Some(name) = test_below(&lines[at + 1..]) else {
                errors.push(format!("{path}:{}: `{}` is not above a test that runs", at + 1, line.trim()));
                continue;
            };
            let test = format!("`{}: {name}`", path.strip_prefix("tests/it/").unwrap_or(path));
            let tests = found.entry(id.trim_end_matches(CONTROL).to_owned()).or_default();
            if id.ends_with(CONTROL) { tests.control.push(test) } else { tests.verify.push(test) }
        }
    }
    found
}

/// The cells of a row of a promise: its id, its text, other evidence.
fn promise(line: &str) -> Option<(&str, &str, &str)> {
    let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.splitn(3, " | ");
    let (id, text) = (cells.next()?, cells.next()?);
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    (id.contains('.') && id.bytes().all(plain)).then(|| (id, text, cells.next().unwrap_or_default()))
}

/// The last cell of a promise, or what is wrong about it.
fn evidence(id: &str, tests: Option<&Tests>, other: &str) -> Result<String, String> {
    let none = Tests::default();
    let tests = tests.unwrap_or(&none);
    let verify = tests.verify.join(", ");
    let mut cell = match (verify.is_empty(), other) {
        (false, NO_TEST) => return Err(format!("{id}: `{NO_TEST}`, but {verify} names it")),
        (true, NO_TEST) => format!("*{NO_TEST}*"),
        (true, "") => return Err(format!("{id}: no test has the comment `{MARK}{id}`: was its test removed?")),
        (true, _) => other.to_owned(),
        (false, "") => verify,
        (false, _) => format!("{other}; {verify}").replacen("; ", ", ", 1),
    };
    if !tests.control.is_empty() {
        let _ = write!(cell, "; {}", tests.control.join(", "));
    }
    Ok(cell)
}

/// The document, or everything that is wrong.
fn generate(source: &str, files: &[(String, String)]) -> Result<String, Vec<String>> {
    let mut errors = Vec::new();
    let tests = comments(files, &mut errors);
    let (mut document, mut ids) = (String::new(), BTreeSet::new());
    for line in source.lines() {
        let Some((id, text, other)) = promise(line) else {
            let _ = writeln!(document, "{line}");
            continue;
        };
        if !ids.insert(id) {
            errors.push(format!("{id} is in {SOURCE} twice"));
        }
        match evidence(id, tests.get(id), other) {
            Ok(cell) => _ = writeln!(document, "| {text} | {cell} |"),
            Err(error) => errors.push(error),
        }
    }
    let unknown = tests.iter().filter(|(id, _)| !ids.contains(id.as_str()));
    errors.extend(unknown.map(|(id, tests)| {
        format!("{id} is not in {SOURCE}, but {} names it", [&tests.verify[..], &tests.control[..]].concat().join(", "))
    }));
    let (title, rest) = document.split_once("\n\n").unwrap_or((&document, ""));
    if errors.is_empty() { Ok(format!("{title}\n\n{NOTE}{rest}")) } else { Err(errors) }
}

fn sources() -> Vec<(String, String)> {
    let all = ["src", "testkit", "tests"].into_iter().flat_map(|folder| files(Path::new(folder), "rs"));
    // This file shows comments that are none.
    let others = all.filter(|path| !path.ends_with("tests/documents/guarantees.rs"));
    others.map(|path| (path.to_str().expect("UTF-8").to_owned(), read(&path))).collect()
}

// Guarantee: observe.documents
#[test]
fn guarantees_are_those_of_the_tests() {
    let document = generate(&read(SOURCE), &sources()).unwrap_or_else(|errors| panic!("{}", errors.join("\n")));
    let how = "`WRITE_DOCS=1 cargo test --test documents guarantees` writes it";
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(DOCUMENT, &document).expect("docs can be written");
    }
    assert!(read(DOCUMENT) == document, "{DOCUMENT} is old: {how}");
    let count = document.lines().filter(|line| line.contains(".rs: ")).count();
    assert!(count > 300, "only {count} promises have a test");
}

/// Every real promise with its real tests, but without the text of one test, which is the only one of its promise.
#[test]
fn removed_test_fails_its_promise() {
    let id = "delivery.one-holder";
    let mark = format!("{MARK}{id}");
    let mut files = sources();
    let (_, text) = files.iter_mut().find(|(_, text)| text.lines().any(|line| line == mark)).expect("its test");
    let lines: Vec<&str> = text.lines().collect();
    let comment = lines.iter().position(|line| *line == mark).expect("its comment");
    let end = comment + lines[comment..].iter().position(|line| *line == "}").expect("the end of the test");
    *text = [&lines[..comment], &lines[end + 1..]].concat().join("\n");
    let errors = generate(&read(SOURCE), &files).expect_err("a promise without a test");
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    assert!(error.starts_with(&format!("{id}: no test has the comment")), "{error}");
}

#[test]
fn false_promises_and_comments_are_named() {
    let source = "# G\n\n| a.kept | A |\n| a.planned | B | No test yet |\n| a.elsewhere | C | `make x` |\n";
    let test = |comment: &str, name: &str| format!("{comment}\n#[tokio::test]\nasync fn {name}() {{}}\n");
    let good = format!(
        "{}{}",
        test("// Guarantee: a.kept", "holds"),
        test("// Guarantee: a.kept (negative control)", "fails")
    );
    let run = |source: &str, text: &str| generate(source, &[("tests/it/x.rs".to_owned(), text.to_owned())]);
    let document = run(source, &good).expect("all is well");
    assert!(
        document.contains("| A | `x.rs: holds`; `x.rs: fails` |\n| B | *No test yet* |\n| C | `make x` |\n"),
        "{document}"
    );
    assert!(run(source, "macro!(\n    // Guarantee: a.kept\n    holds,\n);").is_ok());

    let only_control = test("// Guarantee: a.kept (negative control)", "fails");
    let ignored = "// Guarantee: a.kept\n#[tokio::test]\n#[ignore]\nasync fn holds() {}";
    for (text, error) in [
        (String::new(), "a.kept: no test has the comment"),
        (only_control, "a.kept: no test has the comment"),
        (format!("{good}{}", test("// Guarantee: a.keptt", "other")), "a.keptt is not in"),
        (
            format!("{good}{}", test("// Guarantee: a.planned", "other")),
            "a.planned: `No test yet`, but `x.rs: other` names it",
        ),
        (
            format!("{good}// Guarantee: a.kept\nfn helper() {{}}"),
            "tests/it/x.rs:7: `// Guarantee: a.kept` is not above a test",
        ),
        (ignored.to_owned(), "tests/it/x.rs:1: `// Guarantee: a.kept` is not above a test"),
    ] {
        let errors = run(source, &text).expect_err(error);
        assert!(errors.iter().any(|found| found.starts_with(error)), "{error}: {errors:?}");
    }
    assert!(run(&format!("{source}| a.kept | Again |\n"), &good).is_err());
}
