//! Imports point one way: pure ← infrastructure ← cursor, source, sink ← relay ← retention, verify, admin, intake ← config ← cli.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "documents/literals.rs"]
mod literals;
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
    ("visible", &[]),
    ("tls", &["file"]),
    ("tokens", &["file"]),
    ("database", &["position", "file", "secret", "tls", "visible"]),
    ("metrics", &["position", "telemetry"]),
    ("health", &[]),
    ("telemetry", &["file", "tls"]),
    ("shutdown", &["telemetry"]),
    ("migrate", &["database"]),
    ("cursor", &["position", "late", "audit", "database"]),
    ("source", &["position", "message", "batch", "late", "database", "visible"]),
    ("sink", &["position", "message", "batch", "file", "secret", "tls", "visible"]),
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
            "secret",
            "visible",
            "database",
            "metrics",
            "health",
            "migrate",
            "cursor",
            "source",
            "sink",
            "schedule",
            "telemetry",
        ],
    ),
    ("verify", &["position", "late", "audit", "database", "cursor", "source", "sink", "relay"]),
    ("listener", &[]),
    (GARBLED, &[]),
    ("retention", &["position", "database", "cursor", "source", "relay"]),
    (
        "admin",
        &[
            "position", "visible", "database", "metrics", "health", "listener", "tokens", "cursor", "relay",
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
    "batch.rs",
    "late.rs",
    "audit.rs",
    "audit/sums.rs",
    "pace.rs",
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
    "verify/operations.rs",
    "verify/operations/steps.rs",
    "verify/order.rs",
    "verify/passed/coverage.rs",
    "verify/passed/gone.rs",
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

/// The rooms of `relay`, and what each may import. `config` holds what is configured; what no room has runs all of them.
const ROOMS: &[(&str, &[&str])] = &[
    ("config", &[]),
    ("engine", &["config"]),
    ("setup", &["config", "engine"]),
    ("stream", &["config", "engine", "setup"]),
    ("queue", &["config", "engine", "setup"]),
    ("inspect", &["config", "engine", "setup", "stream", "queue"]),
    ("supervisor", &["config", "engine", "setup", "stream", "queue"]),
    ("once", &["config", "engine", "setup", "stream", "queue", "inspect", "supervisor"]),
];

/// A module of `relay`: a room, or a module of a room with all that is below it.
type Module = Vec<String>;

/// The modules of `relay` and their code without comments and unit tests.
fn relay_modules() -> BTreeMap<Module, String> {
    let mut modules: BTreeMap<Module, String> = BTreeMap::new();
    for path in sources(Path::new("src/relay")) {
        let relative = path.strip_prefix("src/relay").expect("below src/relay").with_extension("");
        let parts: Module = relative.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        if parts.iter().any(|part| part == "tests" || part.ends_with("_tests")) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        // `self::` names a module of the room in the room's own file, and something below the module elsewhere.
        let own = format!("crate::relay::{}::", parts[0]);
        let code = if parts.len() == 1 { code.replace(" self::", &format!(" {own}")) } else { code };
        assert!(
            parts.len() != 2 || !code.contains("super::"),
            "{}: write crate::relay::ROOM::MODULE instead of super::, which this test does not follow",
            path.display()
        );
        modules.entry(parts.into_iter().take(2).collect()).or_default().push_str(&code);
    }
    modules
}

/// The paths below `crate::relay::` that code names, braces resolved.
fn relay_paths(code: &str) -> BTreeSet<Module> {
    fn resolve(text: &str, before: &Module, found: &mut BTreeSet<Module>) {
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
        let mut path = before.clone();
        path.push(text[..end].to_owned());
        let rest = text[end..].trim_start();
        match rest.strip_prefix("::") {
            Some(rest) if rest.starts_with('{') => {
                let (mut depth, mut from) = (0, 1);
                for (at, letter) in rest.char_indices() {
                    match letter {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    if (letter == ',' && depth == 1) || (letter == '}' && depth == 0) {
                        resolve(rest[from..at].trim(), &path, found);
                        from = at + 1;
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            Some(rest) => resolve(rest.trim_start(), &path, found),
            None => {
                path.retain(|part| !part.is_empty() && part != "self");
                found.insert(path);
            }
        }
    }
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::relay::") {
        resolve(&format!("relay::{}", &code[at + "crate::relay::".len()..]), &Vec::new(), &mut found);
    }
    found.into_iter().map(|path| path[1..].to_vec()).collect()
}

/// Which module imports which. A name at the root of `relay` is one that it exports from `config`.
fn relay_imports(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let target = |path: &Module| {
        let two: Module = path.iter().take(2).cloned().collect();
        if modules.contains_key(&two) {
            two
        } else if modules.contains_key(&two[..1]) {
            two[..1].to_vec()
        } else {
            vec!["config".to_owned()]
        }
    };
    let imports = modules.iter().map(|(module, code)| {
        let found = relay_paths(code).iter().map(target).filter(|found| found != module).collect();
        (module.clone(), found)
    });
    imports.collect()
}

fn against_the_law(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (module, found) in imports {
        let Some((_, allowed)) = ROOMS.iter().find(|(room, _)| *room == module[0]) else {
            wrong.push(format!("{} is in no room: give it a place in ROOMS", module.join("::")));
            continue;
        };
        for import in found.iter().filter(|import| import[0] != module[0] && !allowed.contains(&import[0].as_str())) {
            wrong.push(format!("{} must not import {}", module.join("::"), import.join("::")));
        }
    }
    wrong
}

/// The modules that import each other, over however many others.
fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    let reaches = |from: &Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = next.pop() {
            for import in imports.get(&module).into_iter().flatten() {
                if seen.insert(import.clone()) {
                    next.push(import.clone());
                }
            }
        }
        seen
    };
    imports.keys().filter(|module| reaches(module).contains(*module)).map(|module| module.join("::")).collect()
}

#[test]
fn rooms_of_the_relay_import_one_way() {
    let wrong = against_the_law(&relay_imports(&relay_modules()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn relay_has_no_circle_of_imports() {
    let circles = circles(&relay_imports(&relay_modules()));
    assert!(circles.is_empty(), "these modules import each other: {}", circles.join(", "));
}

#[test]
fn planted_import_is_found_by_both_laws() {
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let mut modules = relay_modules();
    let engine = modules.get_mut(&module("engine::circuit")).expect("a module of the engine room");
    engine.push_str("use crate::relay::stream::{turn, worker::{self, Next}};");
    let imports = relay_imports(&modules);
    let wrong = against_the_law(&imports);
    assert_eq!(
        wrong,
        ["engine::circuit must not import stream::turn", "engine::circuit must not import stream::worker"]
    );
    assert!(circles(&imports).contains(&"stream::turn".to_owned()));
}

#[test]
fn paths_below_the_relay_are_resolved_through_braces() {
    let code = "use crate::relay::engine::{Engine, report::{self, write}};\nuse crate::relay::{Config};";
    let found: Vec<String> = relay_paths(code).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["Config", "engine::Engine", "engine::report", "engine::report::write"]);
}
