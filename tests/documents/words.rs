//! Plain English in what users read: documents, help, alerts, and the texts that the program prints, logs or hints with.

use std::fs;
use std::path::{Path, PathBuf};

use crate::literals::{literals, only_literals};
use crate::{documents, files, read};

/// Words of a private dialect, and what says it plainly. Each is matched as a whole word, in any case.
const BANNED: &[(&str, &str)] = &[
    ("mend", "fix, correct"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("nobody", "name the actor: operator, replica, session; or `unknown`"),
    ("somebody", "name the actor"),
    ("everybody", "name the actors"),
    ("whoever", "name the actor"),
    ("wish", "change, request"),
    ("wishes", "changes, requests"),
    ("anew", "again"),
    ("for ever", "indefinitely"),
    ("in the midst", "during"),
    ("seldom", "rarely"),
    ("put aside", "dead-lettered"),
    ("puts aside", "dead-letters"),
    ("what became of", "status, outcome"),
    ("what came of", "status, outcome"),
    ("as a rule", "usually"),
    ("at the most", "at most"),
    ("in place of", "instead of"),
    ("tried again", "retried"),
    ("tries again", "retries"),
    ("take-over", "takeover"),
    ("fail-over", "failover"),
    ("e-mail", "email"),
    ("culprit", "offending row"),
    ("catalogue", "catalog"),
    ("behaviour", "behavior"),
    ("colour", "color"),
    ("licence", "license"),
];

/// The banned words of a text, each with its line.
fn banned(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let text = text.to_lowercase();
    let mut found = Vec::new();
    for (word, plainly) in BANNED {
        let (first, others) = word.split_once(' ').unwrap_or((word, ""));
        for (at, _) in text.match_indices(first) {
            // A line may end between two words.
            let end = |rest: &str| {
                others.split_whitespace().try_fold(rest.len(), |left, next| {
                    let rest = &rest[rest.len() - left..];
                    let after = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\\' || c == '#');
                    after.strip_prefix(next).filter(|_| after.len() < rest.len()).map(str::len)
                })
            };
            let rest = &text[at + first.len()..];
            let Some(left) = end(rest) else { continue };
            let before = text[..at].chars().next_back();
            let after = rest[rest.len() - left..].chars().next();
            // A part of an identifier, as `wish_done`, is no word.
            let ends = |side: Option<char>| !side.is_some_and(|side| side.is_alphanumeric() || side == '_');
            if ends(before) && ends(after) {
                found.push((text[..at].matches('\n').count() + 1, *word, *plainly));
            }
        }
    }
    found.sort_unstable();
    found
}

/// The part of a source file that users can read something of: nothing of tests, nothing of stored names.
fn printed(path: &Path) -> String {
    let code = read(path);
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    without_stored(&only_literals(code))
}

/// Without what older versions wrote to `outbox.operation`.
fn without_stored(text: &str) -> String {
    text.replace("'wish carried out'", "'stored'")
}

/// Words that comments still have: each is a sentence to be written again, with its actor.
const IN_COMMENTS: [&str; 4] = ["nobody", "somebody", "whoever", "what became of"];

/// The comments of Rust code, each in its line.
fn comments(code: &str) -> String {
    let mut bare = code.to_owned();
    for literal in literals(code).into_iter().rev() {
        let lines = "\n".repeat(code[literal.clone()].matches('\n').count());
        bare.replace_range(literal, &lines);
    }
    let comment = |line: &str| line.find("//").map_or(String::new(), |at| line[at..].replace('/', " "));
    bare.lines().map(comment).collect::<Vec<_>>().join("\n")
}

fn sources() -> Vec<PathBuf> {
    let tests = |path: &PathBuf| {
        path.components().any(|part| part.as_os_str() == "tests")
            || path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("tests.rs"))
            || path.starts_with("src/garbled")
    };
    files(Path::new("src"), "rs").into_iter().filter(|path| !tests(path)).collect()
}

/// What operators read beside the documents.
fn shipped() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("docs/openapi.json"), PathBuf::from("deploy/outbox-relay.toml")];
    for extension in ["yaml", "json"] {
        found.extend(files(Path::new("deploy"), extension));
    }
    found
}

fn complaints(path: &Path, text: &str) -> Vec<String> {
    let found = banned(text).into_iter();
    found.map(|(line, word, plainly)| format!("{}:{line}: {word:?}; write: {plainly}", path.display())).collect()
}

#[test]
fn documents_and_shipped_files_are_in_plain_english() {
    // Decisions are kept as they were written; names of tests are words of the tests.
    let kept = |path: &PathBuf| path.starts_with("docs/adr") || path.ends_with("GUARANTEES.md");
    let read_by_users = documents().into_iter().filter(|path| !kept(path)).chain(shipped());
    let found: Vec<_> = read_by_users.flat_map(|path| complaints(&path, &read(&path))).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn printed_texts_are_in_plain_english() {
    let code = sources().into_iter().map(|path| (printed(&path), path));
    // Statements write hints, too.
    let sql = files(Path::new("src"), "sql").into_iter().map(|path| (without_stored(&read(&path)), path));
    let found: Vec<_> = code.chain(sql).flat_map(|(text, path)| complaints(&path, &text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_are_in_plain_english() {
    let complaints = |path: PathBuf| {
        let found = banned(&comments(&read(&path))).into_iter().filter(|(_, word, _)| !IN_COMMENTS.contains(word));
        let complaint = |(line, word, plainly)| format!("{}:{line}: {word:?}; write: {plainly}", path.display());
        found.map(complaint).collect::<Vec<_>>()
    };
    let found: Vec<_> = files(Path::new("src"), "rs").into_iter().flat_map(complaints).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    let planted = "/// Put\n/// aside.\nlet wish = \"// a culprit\"; // for everybody\n";
    let found: Vec<_> = banned(&comments(planted)).into_iter().map(|(line, word, _)| (line, word)).collect();
    assert_eq!(found, [(1, "put aside"), (3, "everybody")]);
}

#[test]
fn planted_words_are_found_where_users_read_them() {
    let code = "// nobody\nlet wish = 'x'; let wish_done = '\"';\nwarn!(\"Nobody \\\"mends\\\" it, for \\\n  ever\");\nr#\"a \"wish\"\"#;";
    let found: Vec<_> = banned(&only_literals(code)).into_iter().map(|(line, word, _)| (line, word)).collect();
    assert_eq!(found, [(3, "for ever"), (3, "mends"), (3, "nobody"), (5, "wish")]);
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("planted.rs");
    fs::write(&path, "const HINT: &str = \"Mend the row.\";\n#[cfg(test)]\nmod tests {\n \"nobody\" }")
        .expect("written");
    assert_eq!(complaints(Path::new("planted.rs"), &printed(&path)), ["planted.rs:1: \"mend\"; write: fix, correct"]);
}
