//! Plain English in what users read: documents, help, alerts, and the texts that the program prints, logs or hints with.

use std::fs;
use std::path::{Path, PathBuf};

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

/// The string literals of Rust code, each in its place: what is between them is blank.
fn literals(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    let blank = |out: &mut String, text: &str| out.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
    while let Some(first) = rest.chars().next() {
        let (length, text) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            (rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len()), true)
        } else if first == '"' {
            (string_end(rest), true)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\'") {
            (3, false)
        } else {
            (first.len_utf8(), false)
        };
        if text {
            out.push_str(&rest[..length])
        } else {
            blank(&mut out, &rest[..length])
        }
        rest = &rest[length..];
    }
    out
}

/// With how many `#` a raw string begins here.
fn raw_string(code: &str) -> Option<usize> {
    let after = code.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn string_end(code: &str) -> usize {
    let mut escaped = false;
    for (at, found) in code.char_indices().skip(1) {
        match found {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The part of a source file that users can read something of: nothing of tests, nothing of stored names.
fn printed(path: &Path) -> String {
    let code = read(path);
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    // What older versions wrote to outbox.operation.
    literals(code).replace("'wish carried out'", "'stored'")
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
    let found: Vec<_> = sources().iter().flat_map(|path| complaints(path, &printed(path))).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn planted_words_are_found_where_users_read_them() {
    let code = "// nobody\nlet wish = 'x'; let wish_done = '\"';\nwarn!(\"Nobody \\\"mends\\\" it, for \\\n  ever\");\nr#\"a \"wish\"\"#;";
    let found: Vec<_> = banned(&literals(code)).into_iter().map(|(line, word, _)| (line, word)).collect();
    assert_eq!(found, [(3, "for ever"), (3, "mends"), (3, "nobody"), (5, "wish")]);
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("planted.rs");
    fs::write(&path, "const HINT: &str = \"Mend the row.\";\n#[cfg(test)]\nmod tests {\n \"nobody\" }")
        .expect("written");
    assert_eq!(complaints(Path::new("planted.rs"), &printed(&path)), ["planted.rs:1: \"mend\"; write: fix, correct"]);
}
