//! Compiles the files of librdkafka that `patches/` changes, and has them linked in place of those that the published
//! `rdkafka-sys` has compiled. docs/adr/0029-answers-of-brokers-do-not-end-the-process.md

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What of the published build the compilation of single files needs.
const NEEDED: [&str; 4] = ["Makefile.config", "config.h", "mklove", "src"];
const LIBRARY: &str = "rdkafka_patched";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=patches");
    // Clippy has a build of its own of each member of a workspace, and links none: what is compiled here would be for nothing.
    let driver = std::env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
    if driver.is_some_and(|driver| driver.file_stem() == Some(OsStr::new("clippy-driver"))) {
        return;
    }
    let published = variable("DEP_RDKAFKA_ROOT");
    let sources = Path::new(&variable("OUT_DIR")).join("librdkafka");
    if sources.exists() {
        fs::remove_dir_all(&sources).unwrap_or_else(|error| panic!("{}: {error}", sources.display()));
    }
    fs::create_dir_all(&sources).unwrap_or_else(|error| panic!("{}: {error}", sources.display()));
    for name in NEEDED {
        copy(&Path::new(&published).join(name), &sources.join(name));
    }
    let mut objects = BTreeSet::new();
    for patch in patches() {
        objects.extend(changed(&patch));
        run(Command::new("patch").args(["-p1", "--batch", "--forward", "--fuzz=0", "-i"]).arg(&patch).current_dir(&sources));
    }
    let objects: Vec<_> = objects.into_iter().collect();
    let mut make = Command::new(if cfg!(target_os = "freebsd") { "gmake" } else { "make" });
    if let Some(jobs) = std::env::var_os("CARGO_MAKEFLAGS") {
        make.env("MAKEFLAGS", jobs);
    }
    make.current_dir(sources.join("src")).arg(format!("LIBNAME=lib{LIBRARY}")).arg(format!("OBJS={}", objects.join(" ")));
    run(make.arg(format!("lib{LIBRARY}.a")));
    println!("cargo:rustc-link-search=native={}", sources.join("src").display());
    // Whole, so that an unpatched copy is never taken in their place: a second one of any function fails the link.
    println!("cargo:rustc-link-lib=static:+whole-archive={LIBRARY}");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: rdkafka-sys is to be built from its sources, by its configure script"))
}

/// In the order of their names, which is the order in which they apply.
fn patches() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("patches");
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut found: Vec<_> = entries.map(|entry| entry.expect("patches").path()).collect();
    found.retain(|path| path.extension() == Some(OsStr::new("patch")));
    found.sort();
    assert!(!found.is_empty(), "no patch in {}", directory.display());
    found
}

/// The objects of the files that a patch changes.
fn changed(patch: &Path) -> Vec<String> {
    let text = fs::read_to_string(patch).unwrap_or_else(|error| panic!("{}: {error}", patch.display()));
    let lines: Vec<_> = text.lines().collect();
    let mut objects = Vec::new();
    for pair in lines.windows(2) {
        let Some(file) = pair[1].strip_prefix("+++ b/src/").filter(|_| pair[0].starts_with("--- ")) else { continue };
        match file.strip_suffix(".c") {
            Some(name) => objects.push(format!("{name}.o")),
            // Files that are not compiled again have been compiled with the published ones.
            None => assert_eq!(pair[0], "--- /dev/null", "{}: changes {file}, which is no file of C", patch.display()),
        }
    }
    assert!(!objects.is_empty(), "{} changes no file of C", patch.display());
    objects
}

/// Without what the published build has made of them.
fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
        return;
    }
    fs::create_dir_all(to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let path = entry.expect("an entry of a directory").path();
        let made = path.extension().is_some_and(|extension| ["a", "d", "o", "so"].iter().any(|made| extension == *made));
        if !made {
            copy(&path, &to.join(path.file_name().expect("a name")));
        }
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
