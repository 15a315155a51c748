//! Every `jq` command that a document or a `--help` shows, on what the program prints.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::outside::{json, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// Takes a minute, and has a test of its own.
const DEMO: &str = "outbox-demo --json";

/// A command and the options and filter of the `jq` behind it.
struct Shown {
    place: String,
    args: Vec<String>,
    jq: Vec<String>,
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md" || extension == "rs") {
            found.push(path);
        }
    }
}

/// The words of a command line; quotation marks hold some together.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

fn shown() -> Vec<Shown> {
    let mut paths = vec![PathBuf::from("README.md")];
    for dir in ["docs", "src/cli", "src/relay"] {
        files(Path::new(dir), &mut paths);
    }
    paths.retain(|path| !path.components().any(|part| part.as_os_str() == "tests"));
    let mut found = Vec::new();
    for path in paths {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let Some((command, jq)) = line.split_once(" | jq ") else { continue };
            if command.contains(DEMO) {
                continue;
            }
            let place = format!("{}: {line}", path.display());
            let (_, command) = command.split_once("outbox-relay ").expect(&place);
            // What is behind the filter: the end of code, of a help's literal, a comment.
            let end = jq.rfind('\'').map_or_else(|| jq.find(['`', '"', ' ']).unwrap_or(jq.len()), |at| at + 1);
            found.push(Shown {
                place,
                args: words(&command.replace('\\', "")),
                jq: words(&jq[..end].replace("\\\"", "\"")),
            });
        }
    }
    found
}

/// The names of keys in a filter.
fn named(filter: &str) -> BTreeSet<String> {
    let outside: String = filter.split('"').step_by(2).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for (at, _) in outside.match_indices('.') {
        names.insert(outside[at + 1..].chars().take_while(|c| is_name(*c)).collect());
    }
    if let Some((_, object)) = outside.split_once('{') {
        let inside = object.split('}').next().unwrap();
        names.extend(inside.split(',').map(|name| name.trim().to_owned()).filter(|name| name.chars().all(is_name)));
    }
    names.remove("");
    names
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// What `jq` exits with, and its errors.
fn jq(arguments: &[String], document: &str) -> (Option<i32>, String) {
    let mut jq = Command::new("jq")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("jq is there: scripts/install tests");
    // It may end before it has read everything.
    let _ = jq.stdin.take().unwrap().write_all(document.as_bytes());
    let done = jq.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn shown_jq_filters_fit_the_printed_documents() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &(stdout_relay("booking_sms", "") + &stdout_relay("booking_events", "")));
    let _process = Process::spawn(&text, &["run"]);
    owner
        .batch_execute(
            "INSERT INTO bookings DEFAULT VALUES; \
             INSERT INTO outbox.schedule (name, tenant, relay, rule) VALUES ('report', 'tenant_a', 'jobs', 'FREQ=DAILY'); \
             UPDATE outbox.schedule SET next_at = now(); \
             INSERT INTO outbox.claim (relay, key, due_at, state, token, claimed_by) VALUES ('s', '{1}', now(), 'unknown', 't', 'r'); \
             INSERT INTO outbox.action (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, started_at, status, payload, \
             on_interrupted, timeout, token, claimed_by, expires_at) VALUES (1, 'report', 'tenant_a', 'jobs', now(), now(), now(), now(), \
             'running', '{}', 'fail', '1 hour', 't', 'r', now())",
        )
        .await
        .unwrap();
    let advanced = "SELECT count(*) = 2 FROM outbox.cursor WHERE position_id IS NOT NULL";
    eventually(PATIENCE * 2, async || owner.query_one(advanced, &[]).await.unwrap().get(0)).await;
    let all = shown();
    assert!(all.len() > 12, "only {} commands were found", all.len());
    for Shown { place, args, jq: arguments } in all {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (_, out, log) = outbox_relay(&text, &args).await;
        assert!(!out.is_empty(), "{place}: {log}");
        let (code, errors) = jq(&arguments, &out);
        let decides = arguments.iter().any(|argument| argument == "-e");
        assert!(code == Some(0) || decides && code == Some(1), "{place}: {code:?} {errors}");
        let mut printed = BTreeSet::new();
        keys(&json(&out), &mut printed);
        let absent: Vec<String> = named(arguments.last().unwrap()).difference(&printed).cloned().collect();
        assert!(absent.is_empty(), "{place}: no {absent:?} in {out}");
    }
}
