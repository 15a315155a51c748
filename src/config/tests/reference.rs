//! The reference file and the code say the same.

use super::*;
use crate::config::keys;

/// The reference with every line that begins with `mark` and holds a key uncommented, where `choose` says so.
fn uncommented(mark: &str, choose: impl Fn(usize) -> bool) -> String {
    let line = |(number, line): (usize, &str)| match line.strip_prefix(mark) {
        Some(rest) if is_setting(rest) && choose(number) => rest.to_owned(),
        _ => line.to_owned(),
    };
    REFERENCE.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn is_setting(line: &str) -> bool {
    line.split_once(" = ").is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || "_.".contains(c)))
}

fn numbers(mark: &str) -> Vec<usize> {
    let is_marked = |line: &str| line.strip_prefix(mark).is_some_and(is_setting);
    REFERENCE.lines().enumerate().filter(|(_, line)| is_marked(line)).map(|(number, _)| number).collect()
}

#[test]
fn the_reference_file_is_valid() {
    let config = parse(REFERENCE).expect("valid");
    assert_eq!(config.relays.len(), 14);
}

// Guarantee: config.reference
#[test]
fn every_commented_default_is_the_default() {
    let config = parse(REFERENCE).expect("valid");
    assert!(numbers("# ").len() > 20);
    for number in numbers("# ") {
        let text = uncommented("# ", |line| line == number);
        assert_eq!(parse(&text).expect("valid"), config, "line {}", number + 1);
    }
    assert_eq!(parse(&uncommented("# ", |_| true)).expect("valid"), config);
}

#[test]
fn every_commented_example_is_valid_and_changes_something() {
    let config = parse(REFERENCE).expect("valid");
    for number in numbers("#+ ") {
        let text = uncommented("#+ ", |line| line == number);
        if text.contains("\nsasl_password_file") {
            assert!(parse(&text).expect_err("no such file").to_string().contains("cannot be read"));
            continue;
        }
        assert_ne!(parse(&text).expect("valid"), config, "line {}", number + 1);
    }
}

#[test]
fn every_alternative_replaces_the_setting_above_it() {
    for number in numbers("#| ") {
        let mut lines: Vec<&str> = REFERENCE.lines().collect();
        lines[number] = lines[number].trim_start_matches("#| ");
        let above = (0..number).rev().find(|line| is_setting(lines[*line])).expect("a setting");
        lines[above] = "";
        assert!(parse(&lines.join("\n")).is_ok(), "line {}", number + 1);
    }
}

// Guarantee: config.reference
#[test]
fn the_sink_of_ones_own_is_valid_in_a_program_that_registers_it() {
    let own = |line: &str| line.strip_prefix("#: ").unwrap_or(line).to_owned();
    let text = REFERENCE.lines().map(own).collect::<Vec<_>>().join("\n");
    let config = own_sinks::parse_with_kinds(&text).expect("valid");
    assert_eq!(config.relays.last().expect("a relay").sink.kind(), "unix_socket");
    assert_eq!(config.relays.len(), 1 + parse(REFERENCE).expect("valid").relays.len());
}

#[test]
fn every_known_key_stands_in_the_reference_and_every_key_there_is_known() {
    let everything: String = REFERENCE
        .lines()
        .map(|line| {
            let rest = ["# ", "#+ ", "#| ", "#: "].into_iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
            format!("{}\n", if is_setting(rest) || rest.starts_with('[') { rest } else { "" })
        })
        .collect();
    let mut section = String::new();
    let mut found: Vec<(String, String)> = Vec::new();
    for line in everything.lines().filter(|line| !line.is_empty()) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
            let (parent, key) = section.rsplit_once('.').unwrap_or(("", &section));
            found.push((parent.to_owned(), key.to_owned()));
            // The last part is a name of the user's own.
            let parents =
                ["relay.sink.email.templates", "relay.sink.command.programs", "relay.source.schedule.queries"];
            if parents.contains(&parent) {
                section = parent.to_owned();
            }
        } else if section != "kafka.properties" {
            let key = line.split(" = ").next().expect("a key");
            let is_known = keys::of(&section).contains(&key) || keys::OPEN.contains(&section.as_str());
            assert!(is_known, "[{section}] {key} is not known");
            found.push((section.clone(), key.to_owned()));
        }
    }
    for (section, known) in keys::SECTIONS {
        for key in *known {
            // Sections above others need no header of their own; payload's keys are named in one line.
            let is_parent =
                keys::SECTIONS.iter().any(|(name, _)| *name == format!("{section}.{key}").trim_matches('.'));
            let is_there = found.contains(&((*section).to_owned(), (*key).to_owned()));
            assert!(is_there || is_parent || *section == "relay.sink.kafka.payload", "[{section}] {key} is missing");
        }
    }
}
