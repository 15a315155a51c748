//! The rooms of `relay` import each other one way, and no module of it imports one that imports it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::sources;

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
