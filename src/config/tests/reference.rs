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
    keys::setting(line).is_some()
}

fn numbers(mark: &str) -> Vec<usize> {
    let is_marked = |line: &str| line.strip_prefix(mark).is_some_and(is_setting);
    REFERENCE.lines().enumerate().filter(|(_, line)| is_marked(line)).map(|(number, _)| number).collect()
}

#[test]
fn the_reference_file_is_valid() {
    let config = parse(REFERENCE).expect("valid");
    assert_eq!(config.relays.len(), 20);
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
        let halves = ["\nusername = \"outbox-relay", "\npassword_file = \"/run/secrets/registry"];
        if halves.iter().any(|key| text.contains(key)) {
            assert!(parse(&text).expect_err("one of a pair").to_string().contains("missing beside"));
            continue;
        }
        if ["\ncert_file", "\nkey_file"].iter().any(|key| text.contains(key)) {
            assert!(parse(&text).expect_err("one of a pair").to_string().contains("name both"));
            continue;
        }
        assert_ne!(parse(&text).expect("valid"), config, "line {}", number + 1);
    }
}

#[test]
fn certificate_and_key_of_the_example_are_valid_together() {
    let pair = |line: usize| {
        REFERENCE.lines().nth(line).is_some_and(|line| line.contains("cert_file") || line.contains("key_file"))
    };
    let config = parse(&uncommented("#+ ", pair)).expect("valid");
    let files = config.postgres.identity.expect("both");
    assert_eq!(
        (files.certificate.file_name(), files.key.file_name()),
        (Some("relay.crt".as_ref()), Some("relay.key".as_ref()))
    );
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

/// What a line would say without its mark.
fn unmarked(line: &str) -> &str {
    keys::MARKS.into_iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
}

/// No key takes an instant but `start`.
#[test]
fn every_key_of_the_reference_is_read() {
    let is_read = |number: usize| {
        let mut lines: Vec<&str> = REFERENCE.lines().collect();
        let key = keys::setting(unmarked(lines[number])).expect("a key");
        let wrong = format!("{key} = 1979-05-27");
        if lines[number].starts_with("#| ") {
            let above = (0..number).rev().find(|line| is_setting(lines[*line])).expect("a setting");
            lines[above] = "";
        }
        lines[number] = &wrong;
        let refused = parse(&lines.join("\n")).err().map(|error| error.to_string());
        // The value itself may be hidden.
        refused.is_some_and(|error| error.contains(&format!("{key} = ")))
    };
    let mut section = "";
    let mut unread = Vec::new();
    for (number, line) in REFERENCE.lines().enumerate() {
        if unmarked(line).starts_with('[') {
            section = unmarked(line);
        } else if keys::setting(unmarked(line)).is_some() && !line.starts_with("#: ") && !is_read(number) {
            unread.push(format!("{}: {section} {line}", number + 1));
        }
    }
    assert!(unread.is_empty(), "{}", unread.join("\n"));
}
