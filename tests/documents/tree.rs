//! The tree in CONTRIBUTING.md is the real one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::read;

/// The paths of the listing: two spaces more are one folder deeper; text after the name explains it.
fn listed(text: &str) -> BTreeSet<String> {
    let (_, rest) = text.split_once("## Where things are").expect("the section");
    let listing = rest.split("```").nth(1).expect("the listing");
    let mut folders: Vec<String> = Vec::new();
    let mut found = BTreeSet::new();
    for line in listing.lines().skip(1) {
        let indent = line.len() - line.trim_start().len();
        // Continued explanations are far to the right.
        let Some(name) = line.split_whitespace().next().filter(|_| indent <= 8) else { continue };
        folders.truncate(indent / 2);
        let path = format!("{}{name}", folders.concat());
        folders.push(name.to_owned());
        found.insert(path);
    }
    found
}

/// What git tracks directly in a folder, folders with a slash; empty: the root.
fn tracked(folder: &str) -> BTreeSet<String> {
    // The tree may belong to another user than the one who runs the tests, as in a container.
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "ls-files", "--cached", "--", "."]).current_dir(Path::new(".").join(folder));
    let output = git.output().expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("UTF-8");
    let present = |name: &&str| Path::new(folder).join(name).exists();
    let first = |name: &str| name.split_once('/').map_or_else(|| name.to_owned(), |(first, _)| format!("{first}/"));
    names.lines().filter(present).map(|name| format!("{folder}{}", first(name))).collect()
}

#[test]
fn listing_of_contributing_is_the_tree() {
    let listed = listed(&read("CONTRIBUTING.md"));
    assert!(listed.len() > 40, "only {} lines were read: is the listing written in another way now?", listed.len());
    let dead: Vec<_> = listed.iter().filter(|path| fs::metadata(path).is_err()).collect();
    assert!(dead.is_empty(), "CONTRIBUTING.md lists what does not exist: {dead:?}");
    for folder in ["", "src/"] {
        let missing: Vec<_> = tracked(folder).difference(&listed).cloned().collect();
        assert!(missing.is_empty(), "CONTRIBUTING.md does not list {missing:?}");
    }
}

#[test]
fn listing_is_read_by_indentation() {
    let text =
        "## Where things are\n```\na/   why\n  b.rs  text\n  c/\n                    more text\n    d.rs\ne\n```\n";
    let all = ["a/", "a/b.rs", "a/c/", "a/c/d.rs", "e"].map(str::to_owned);
    assert_eq!(listed(text), BTreeSet::from(all));
}
