//! Recurrence rules beside a second implementation: 5,000 drawn rules give the same first occurrences in python-dateutil.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use outbox_relay::position::Timestamp;
use outbox_relay::schedule::{Problem, Recurrence, When};
use serde_json::{Value, json};

mod draw;

const PROGRAM: &str = include_str!("recurrence/second.py");
/// The distribution's, which has its packages, before any other.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "python3"];
const RULES: usize = 5_000;
/// As in the program: so many occurrences, up to the end of this year.
const WANTED: usize = 8;
const LAST: &str = "2101-01-01T00:00:00Z";
/// Draws another set of rules: the seed that a failure printed, or any other.
const SEED: &str = "OUTBOX_RELAY_TEST_SEED";

/// The Python that has dateutil.
fn python() -> &'static str {
    let has = |python: &&str| {
        let asked = Command::new(python).args(["-c", "import dateutil.rrule"]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    PYTHONS
        .into_iter()
        .find(has)
        .expect("Python's dateutil is missing: `make deps-test` installs it (Debian: python3-dateutil)")
}

/// What the second implementation answers to each rule; before that, its departures from the standard by name.
fn second(rules: &[(String, i64)]) -> (Value, Vec<Value>) {
    let mut child = Command::new(python())
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = child.stdin.take().unwrap();
    let asked: String =
        rules.iter().map(|(rule, start)| format!("{}\n", json!({"rule": rule, "start": start}))).collect();
    // It answers while it reads: its pipe would be full before the last rule is written.
    let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().expect("Python reads all rules");
    assert!(output.status.success(), "the second implementation ended with {}: see above", output.status);
    let mut lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut next = || lines.next().map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let departures = next().expect("a first line")["departures"].take();
    (departures, std::iter::from_fn(next).collect())
}

/// The same of the program under test; why the rule is refused, if it is.
fn ours(rule: &str, start: i64) -> Result<Vec<i64>, Problem> {
    let starts_at = Some(Timestamp::from_unix_micros(start * 1_000_000));
    let changed_at = Timestamp::NEG_INFINITY;
    let when = When { rule: Some(rule), time_zone: "UTC", starts_at, ends_at: None, changed_at };
    let last = Timestamp::parse_rfc3339(LAST).unwrap();
    let found = Recurrence::new(&when).and_then(|recurrence| recurrence.following(changed_at, WANTED));
    match found {
        Ok(found) => {
            let early = found.iter().filter(|found| found.at < last);
            Ok(early.map(|found| found.at.unix_micros() / 1_000_000).collect())
        }
        // There is none in the years that are compared.
        Err(problem) if ["never", "beyond"].contains(&problem.code) => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}

fn seed() -> u64 {
    std::env::var(SEED).map_or(19, |seed| seed.parse().expect("the seed is a number"))
}

#[test]
fn drawn_rules_agree_with_a_second_implementation() {
    let seed = seed();
    println!("{RULES} rules of seed {seed}; {SEED}=n draws others");
    let mut random = fastrand::Rng::with_seed(seed);
    let rules: Vec<(String, i64)> = (0..RULES).map(|_| draw::rule(&mut random)).collect();
    let (departures, answers) = second(&rules);
    assert_eq!(answers.len(), RULES, "the second implementation left rules out");

    let (mut differences, mut met, mut empty, mut costly) = (Vec::new(), BTreeMap::<String, usize>::new(), 0, 0);
    for ((rule, start), answer) in rules.iter().zip(&answers) {
        let ours = ours(rule, *start);
        for name in answer["met"].as_array().into_iter().flatten() {
            *met.entry(name.as_str().unwrap().to_owned()).or_default() += 1;
        }
        if ours.as_ref().is_err_and(|problem| problem.code == "cost") {
            costly += 1;
            continue;
        }
        let same = ours.as_ref().is_ok_and(|found| answer["found"] == json!(found));
        empty += usize::from(same && answer["found"] == json!([]));
        if !same {
            differences.push(format!("{rule} from {start}\n    here: {ours:?}\n    there: {answer}"));
        }
    }
    for (name, count) in &met {
        println!("{count} rules with a departure of dateutil: {name}: {}", departures[name].as_str().unwrap());
    }
    println!("{empty} rules never occur; {costly} are refused because their search takes too many steps");
    let (count, all) = (differences.len(), differences.join("\n"));
    assert_eq!(count, 0, "seed {seed}: {count} of {RULES} rules differ:\n{all}");
    assert!(empty + costly < RULES / 10, "{} of {RULES} rules compare nothing", empty + costly);
}

#[test]
fn second_implementation_detects_a_wrong_rule() {
    // What an intersection of plain and numbered days gives.
    let start = 873_190_800; // 2 September 1997
    let (_, answers) = second(&[("FREQ=MONTHLY;BYDAY=MO,TU,1MO".to_owned(), start)]);
    let firsts = ours("FREQ=MONTHLY;BYDAY=1MO", start).unwrap();
    assert_eq!(firsts.len(), WANTED);
    assert_ne!(answers[0]["found"], json!(firsts));
}
