//! The documents fit the tree: links, tests, codes, figures, and the list of files in CONTRIBUTING.md.

use std::fs;
use std::path::{Path, PathBuf};

mod apps;
mod codes;
mod figures;
mod guarantees;
mod links;
mod literals;
mod tree;
mod words;

fn read(file: impl AsRef<Path>) -> String {
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.as_ref().display()))
}

/// Files below a folder whose name ends with this, in the order of their paths.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every document that a reader is sent to; CHANGELOG.md speaks of former versions.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from).to_vec();
    found.extend(files(Path::new("docs"), "md"));
    found
}

/// The codes in the first column of the tables of a text.
fn first_column(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(|word| !word.contains(' ')).collect()
}

/// The text of a section, up to the next heading of its level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}
