//! What a problem advises can be done as it stands.

use super::super::*;
use super::{GOOD, parse};

fn problems(text: &str) -> Vec<Problem> {
    parse(text).expect_err("wrong").list().to_vec()
}

/// The fix of the only problem about a key that ends like this.
#[track_caller]
fn fix(text: &str, key: &str) -> String {
    let found = problems(text);
    let about: Vec<&Problem> = found.iter().filter(|problem| problem.key.ends_with(key)).collect();
    assert_eq!(about.len(), 1, "{found:?}");
    about[0].fix.clone()
}

#[test]
fn array_in_place_of_a_string_is_to_become_one_string() {
    let several = GOOD.replace("\"127.0.0.1:9092\"", "[\"a:1\", \"b:1\"]");
    assert!(fix(&several, "bootstrap_servers").contains("commas separate them: \"a,b\""), "{several}");
    let one = GOOD.replace("\"127.0.0.1:9092\"", "[\"a:1\"]");
    assert_eq!(fix(&one, "bootstrap_servers"), "write the string without brackets");
}

#[test]
fn one_bracket_around_relay_is_the_only_problem_told() {
    let one = GOOD.replacen("[[relay]]", "[relay]", 1) + "[relay]\nname = \"c\"\nstart = \"now\"\n";
    let found = problems(&one);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].key.as_str(), found[0].fix.as_str()), ("relay", "write two brackets: [[relay]]"));
}

#[test]
fn words_of_guarantee_that_are_offered_fit_the_relay() {
    let wrong = GOOD.replacen("[[relay]]\n", "[[relay]]\nguarantee = \"exactly_once\"\n", 1);
    assert_eq!(fix(&wrong, "guarantee"), "write \"at_least_once\" or \"at_most_once\"");
}

#[test]
fn tokens_for_metrics_alone_are_told_the_file_that_is_missing() {
    let wrong = GOOD.replacen("[[relay]]", "[admin]\ntoken_for_metrics = true\n[[relay]]", 1);
    assert!(fix(&wrong, "token_for_metrics").contains("add token_file = "), "{wrong}");
}

#[test]
fn file_that_may_not_be_read_is_not_to_be_named() {
    // Root may read any file: a test with one would prove nothing where tests run as root.
    let told = super::super::unreadable(std::io::ErrorKind::PermissionDenied, "relay.toml");
    assert!(told.contains("let the user that runs this read it") && !told.contains("--config"), "{told}");
    assert!(super::super::unreadable(std::io::ErrorKind::NotFound, "relay.toml").contains("--config"));
}
