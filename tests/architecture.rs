//! Imports point one way: pure ← infrastructure ← cursor ← jobs, source, sink ← relay ← retention, verify, admin, intake ← config
//! ← cli.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "documents/literals.rs"]
mod literals;
#[path = "architecture/rooms.rs"]
mod rooms;
#[path = "architecture/statements.rs"]
mod statements;

/// What each top-level module of `src` may import. `horizon` and `shape` are pure, and live in `source` for the reader's
/// sake; what they may import is checked by the second list.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("position", &[]),
    ("message", &["position", "batch"]),
    ("batch", &["message", "position"]),
    ("late", &["position"]),
    ("audit", &["position"]),
    ("pace", &[]),
    ("schedule", &["position"]),
    ("file", &[]),
    ("secret", &["file"]),
    ("retry_after", &[]),
    ("visible", &[]),
    ("notation", &[]),
    ("tls", &["file"]),
    ("tokens", &["file"]),
    ("database", &["position", "file", "secret", "tls", "visible"]),
    ("metrics", &["position", "telemetry"]),
    ("health", &[]),
    ("telemetry", &["file", "retry_after", "tls", "visible"]),
    ("shutdown", &["telemetry"]),
    ("migrate", &["database"]),
    ("cursor", &["position", "late", "audit", "database"]),
    ("jobs", &["position", "database", "cursor"]),
    ("source", &["position", "message", "batch", "late", "database", "notation", "visible"]),
    ("sink", &["position", "message", "batch", "file", "notation", "retry_after", "secret", "tls", "visible"]),
    (
        "relay",
        &[
            "position",
            "message",
            "batch",
            "late",
            "audit",
            "pace",
            "file",
            "notation",
            "secret",
            "visible",
            "database",
            "metrics",
            "health",
            "migrate",
            "cursor",
            "jobs",
            "source",
            "sink",
            "schedule",
            "telemetry",
        ],
    ),
    ("verify", &["position", "late", "audit", "notation", "database", "cursor", "source", "sink", "relay"]),
    ("listener", &[]),
    (GARBLED, &[]),
    ("retention", &["position", "database", "cursor", "source", "relay"]),
    (
        "admin",
        &[
            "position", "visible", "database", "metrics", "health", "listener", "tokens", "cursor", "jobs", "relay",
            "schedule", "source",
        ],
    ),
    ("intake", &["position", "pace", "database", "metrics", "listener", "tokens"]),
    ("program", &["cli", "config", "sink", "telemetry"]),
    (
        "config",
        &[
            "position",
            "pace",
            "file",
            "notation",
            "secret",
            "database",
            "source",
            "sink",
            "relay",
            "retention",
            "admin",
            "intake",
            "telemetry",
        ],
    ),
];

/// Input for tests, which every reader's tests import.
const GARBLED: &str = "garbled";

const PURE: &[&str] = &[
    "position.rs",
    "position/noted.rs",
    "message.rs",
    "notation.rs",
    "batch.rs",
    "late.rs",
    "audit.rs",
    "audit/sums.rs",
    "pace.rs",
    "retry_after.rs",
    "source/certainty.rs",
    "source/horizon.rs",
    "schedule/calendar.rs",
    "schedule/clock.rs",
    "schedule/english.rs",
    "schedule/recurrence.rs",
    "schedule/rule.rs",
    "schedule/walk.rs",
    "schedule/zone.rs",
    "metrics/stage.rs",
    "verify/decide.rs",
    "verify/eras.rs",
    "verify/operations.rs",
    "verify/operations/ended.rs",
    "verify/operations/outcome.rs",
    "verify/operations/steps.rs",
    "verify/order.rs",
    "verify/passed/coverage.rs",
    "verify/passed/gone.rs",
    "verify/passed/letters.rs",
    "verify/passed/reason.rs",
    "verify/sketch.rs",
    "visible.rs",
];

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("src is readable") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn module(path: &Path) -> String {
    let relative = path.strip_prefix("src").expect("below src");
    let first = relative.components().next().expect("a component").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

fn imports(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let list = &list[..list.find("};").unwrap_or(list.len())];
            let mut depth = 0;
            let mut word = String::new();
            for letter in list.chars() {
                match letter {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut word)),
                    _ if depth == 0 => word.push(letter),
                    _ => {}
                }
            }
            found.push(word);
        } else {
            found.push(rest.to_owned());
        }
    }
    found
        .into_iter()
        .map(|path| path.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>())
        .filter(|name| !name.is_empty())
        .collect()
}

// Guarantee: observe.imports
#[test]
fn imports_point_one_way() {
    let mut wrong = Vec::new();
    for path in sources(Path::new("src")) {
        let module = module(&path);
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == module) else {
            assert!(
                ["lib", "main", "cli"].contains(&module.as_str()),
                "module {module} is not in the import table: give it a place"
            );
            continue;
        };
        for import in imports(&fs::read_to_string(&path).expect("readable")) {
            if import != module && import != GARBLED && !allowed.contains(&import.as_str()) {
                wrong.push(format!("{}: {module} must not import {import}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_modules_know_neither_sql_nor_a_runtime() {
    for file in PURE {
        let text = fs::read_to_string(Path::new("src").join(file)).expect("readable");
        let code: Vec<&str> = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect();
        for line in code {
            for word in ["tokio", "deadpool", "rdkafka", "reqwest", "crate::database"] {
                assert!(!line.contains(word), "{file} is pure, but says: {line}");
            }
        }
    }
}

#[test]
fn no_import_is_missed_by_the_parser() {
    assert_eq!(
        imports("use crate::{pace, sink::{Sink, kafka}, source};\nuse crate::cursor::x;"),
        ["pace", "sink", "source", "cursor"]
    );
    assert!(imports("// crate::relay is not imported by a comment").is_empty());
}
