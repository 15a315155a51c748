//! `aws_iam` of `[kafka]`.

use super::environment::Environment;
use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::value;
use crate::sink::kafka::aws_iam::Config;

/// Of AWS's own programs, in their order.
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// `None` when it is absent, or wrong and reported.
pub(super) fn read(section: &Section<'_>, environment: &Environment) -> Option<Config> {
    if !section.has("aws_iam") {
        return None;
    }
    if !Config::is_available() {
        let fix = "remove [kafka.aws_iam], or use a program that was built with the cargo feature iam";
        section.problem("aws_iam", Wrong::new("this program was built without it", fix));
        return None;
    }
    let table = section.section("aws_iam");
    if !table.is_present() {
        return None;
    }
    let role_arn = table.read("role_arn", value::parsed(role_arn));
    let profile = table.read("profile", value::text);
    let session_name = table.read("session_name", value::parsed(session_name));
    Some(Config { region: region_of(&table, environment)?, role_arn, profile, session_name })
}

/// The cluster's, which the token is signed for. Where a pod runs is usually said by a variable.
fn region_of(table: &Section<'_>, environment: &Environment) -> Option<String> {
    if table.has("region") {
        return table.read("region", value::parsed(region));
    }
    let is_set = |name: &&str| environment.get(*name).is_some_and(|value| !value.is_empty());
    let Some(name) = REGIONS.into_iter().find(is_set) else {
        let [first, second] = REGIONS;
        let fix = format!("write region = \"eu-central-1\", the cluster's, or set the variable {first} or {second}");
        table.missing("region", "missing", &fix);
        return None;
    };
    match region(&environment[name]) {
        Ok(region) => Some(region),
        Err(Wrong { what, fix }) => {
            table.problem("region", Wrong::new(format!("the variable {name} is {what}"), fix));
            None
        }
    }
}

/// It becomes part of a host's name.
fn region(text: &str) -> Result<String, Wrong> {
    let is_name = text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-');
    if is_name && (3..=64).contains(&text.len()) && !text.starts_with('-') && !text.ends_with('-') {
        return Ok(text.to_owned());
    }
    Err(Wrong::new("no region of AWS", "write the region in which the cluster is, for example \"eu-central-1\""))
}

fn role_arn(text: &str) -> Result<String, Wrong> {
    let is_account = |account: &str| account.len() == 12 && account.bytes().all(|c| c.is_ascii_digit());
    match text.splitn(6, ':').collect::<Vec<_>>()[..] {
        ["arn", partition, "iam", "", account, resource]
            if partition.starts_with("aws")
                && is_account(account)
                && resource.strip_prefix("role/").is_some_and(|name| !name.is_empty()) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(Wrong::new("no ARN of a role", "write it as IAM has it: \"arn:aws:iam::123456789012:role/NAME\"")),
    }
}

/// As STS takes it.
fn session_name(text: &str) -> Result<String, Wrong> {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || "_=,.@+-".contains(c));
    if is_name && (2..=64).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new("no name of a session", "write 2 to 64 letters, digits and characters of _=,.@+-"))
}

/// As it is read.
pub(super) fn write(lines: &mut TomlLines, config: &Config) {
    lines.section("[kafka.aws_iam]");
    lines.text("region", &config.region);
    for (key, value) in
        [("role_arn", &config.role_arn), ("profile", &config.profile), ("session_name", &config.session_name)]
    {
        if let Some(value) = value {
            lines.text(key, value);
        }
    }
}
