//! Links lead to a file and a section, and tests that documents name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::{documents, read};

/// The anchors of a document's headings: lower case, spaces as hyphens, other signs left out.
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

// Guarantee: observe.documents
#[test]
fn links_lead_to_files_and_sections() {
    let mut files = documents();
    files.push(PathBuf::from("CHANGELOG.md"));
    let (mut count, mut dead) = (0, Vec::new());
    for file in files {
        let text = read(&file);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.clone() } else { file.parent().expect("a folder").join(path) };
            let exists = target.exists() && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !exists {
                dead.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(dead.is_empty(), "these links lead nowhere: {dead:#?}");
    assert!(count > 200, "only {count} links were found");
}

#[test]
fn every_document_is_in_the_index() {
    let index = read("docs/README.md");
    for file in documents().iter().filter_map(|file| file.strip_prefix("docs").ok()) {
        let name = file.to_str().expect("UTF-8");
        let listed = name.starts_with("adr/") || name == "README.md" || index.contains(&format!("]({name}"));
        assert!(listed, "docs/README.md does not mention {name}");
    }
}

// Guarantee: observe.documents
#[test]
fn named_tests_exist() {
    let (mut count, mut missing) = (0, Vec::new());
    for file in documents() {
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
            let forms = [format!("fn {name}("), format!("        {name},"), format!("::{name},")];
            if !forms.iter().any(|form| source.contains(form.as_str())) {
                missing.push(format!("{}: {named}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
    assert!(count > 150, "only {count} tests are named");
}

#[test]
fn named_files_exist() {
    let (mut count, mut missing) = (0, Vec::new());
    for file in documents() {
        let text = read(&file);
        for named in text.split('`').skip(1).step_by(2) {
            let path = named.split(": ").next().unwrap_or(named);
            let ours = ["src/", "tests/", "testkit/", "deploy/", "scripts/", "benches/", "docs/", "schema/"];
            let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte));
            if !plain || !ours.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            count += 1;
            if fs::metadata(path).is_err() {
                missing.push(format!("{}: {named}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "no such files: {missing:#?}");
    assert!(count > 200, "only {count} files are named");
}
