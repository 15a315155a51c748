//! `[kafka]`: the cluster, with librdkafka's own properties passed through.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::environment::Environment;
use super::problem::{Place, Wrong};
use super::section::Section;
use super::tree::{Node, TomlTable, Value};
use super::{aws_iam, oauth2, properties, value};
use crate::sink::kafka::ClusterConfig;

/// `None` when it is absent, or wrong and reported.
pub(super) fn read(section: &Section<'_>, environment: &Environment) -> Option<ClusterConfig> {
    let password = section.read("sasl_password_file", secret_of_file);
    let mut properties = read_properties(section);
    let mut password_file = None;
    if let Some((path, password)) = password {
        // A pipe has given it once and for all.
        password_file = Some(path).filter(|path| path.is_file());
        if properties.insert("sasl.password".to_owned(), password).is_some() {
            let what = "the password is given twice: here and as the property sasl.password";
            section.problem("sasl_password_file", Wrong::new(what, "remove one of the two"));
        }
    }
    let (oauth2, extensions) = oauth2::read_kafka(section);
    let aws_iam = aws_iam::read(section, environment);
    log_in(section, &mut properties);
    if !section.is_present() {
        return None;
    }
    let fix = "name at least one broker: bootstrap_servers = \"127.0.0.1:9092\"";
    let bootstrap_servers = section.require("bootstrap_servers", value::parsed(servers), fix)?;
    if section.has("aws_iam") {
        encrypted(section, &properties, &bootstrap_servers);
    }
    Some(ClusterConfig { bootstrap_servers, properties, password_file, oauth2, extensions, aws_iam })
}

/// What says which log-in clients make, and by what.
const MECHANISM: &str = "sasl.mechanism";
const PROTOCOL: &str = "security.protocol";
const TOKENS: &str = "OAUTHBEARER";
/// What Java's clients of Amazon MSK call it.
const OF_JAVA: &str = "AWS_MSK_IAM";
const FIX: &str =
    "write [kafka.oauth2]: token_url, client_id, client_secret_file; or for Amazon MSK [kafka.aws_iam]: region";

/// Tokens are the relay's own matter: one issuer for all clients, and its secret read again. librdkafka's own ways are not built in,
/// or for trials only.
fn log_in(section: &Section<'_>, properties: &mut BTreeMap<String, String>) {
    let problem = |key: &str, what: &str, fix: &str| section.problem(key, Wrong::new(what, fix));
    let of_tokens = |(name, value): &(&String, &String)| {
        let is_set = !matches!(value.as_str(), "" | "default" | "false");
        is_set && (name.starts_with("sasl.oauthbearer.") || name.contains("oauthbearer.unsecure"))
    };
    if let Some((name, _)) = properties.iter().find(of_tokens) {
        let fix = format!("remove it, and {FIX}");
        problem(&format!("properties.{name}"), properties::FETCHED, &fix);
    }
    let with = ["oauth2", "aws_iam"].into_iter().filter(|key| section.has(key)).collect::<Vec<_>>();
    if with.len() > 1 {
        problem("aws_iam", "clients log in in one way, and [kafka.oauth2] is another", "remove one of the two");
    }
    let wants_tokens = |mechanism: &str| [TOKENS, OF_JAVA].iter().any(|name| mechanism.eq_ignore_ascii_case(name));
    let mechanism = properties.get(MECHANISM).map(String::as_str);
    let Some(key) = with.first() else {
        if mechanism.is_some_and(wants_tokens) {
            problem(&format!("properties.{MECHANISM}"), "this log-in needs tokens", FIX);
        }
        return;
    };
    if let Some(mechanism) = mechanism.filter(|mechanism| !mechanism.eq_ignore_ascii_case(TOKENS)) {
        let what = format!("[kafka.{key}] counts for {TOKENS} only, and {MECHANISM} is {mechanism:?}");
        problem(key, &what, &format!("remove {MECHANISM} or [kafka.{key}]"));
    }
    for name in ["sasl.username", "sasl.password"] {
        if properties.contains_key(name) {
            let what = format!("{name} counts for nothing beside tokens");
            problem(key, &what, &format!("remove {name} or [kafka.{key}]"));
        }
    }
    properties.entry(MECHANISM.to_owned()).or_insert_with(|| TOKENS.to_owned());
    let protocol = properties.entry(PROTOCOL.to_owned()).or_insert_with(|| "sasl_ssl".to_owned());
    if !protocol.to_ascii_lowercase().starts_with("sasl_") {
        let what = format!("no token is sent by {PROTOCOL} = {protocol:?}");
        problem(key, &what, &format!("write {PROTOCOL} = \"sasl_ssl\", or remove [kafka.{key}]"));
    }
}

/// Who reads a signed token on its way logs in as the relay, for a quarter of an hour. Amazon's brokers take it by TLS only.
fn encrypted(section: &Section<'_>, properties: &BTreeMap<String, String>, servers: &str) {
    let is_plain = properties.get(PROTOCOL).is_some_and(|protocol| protocol.eq_ignore_ascii_case("sasl_plaintext"));
    let is_here = |server: &str| {
        let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    };
    if is_plain && !servers.split(',').all(is_here) {
        let what = format!("the token would go over the network in clear by {PROTOCOL} = \"sasl_plaintext\"");
        section.problem("aws_iam", Wrong::new(what, format!("write {PROTOCOL} = \"sasl_ssl\"")));
    }
}

/// The file and what it holds; clients that are made later read it again, where it is no pipe.
fn secret_of_file(node: &Node) -> Result<(PathBuf, String), Wrong> {
    let path = value::path(node)?;
    match crate::file::piped_text(&path) {
        Ok(text) if text.trim().is_empty() => {
            Err(Wrong::new(format!("{} is empty", path.display()), "write the password into it"))
        }
        Ok(text) => Ok((path, text.trim_end_matches(['\r', '\n']).to_owned())),
        Err(error) => {
            let what = format!("{} cannot be read: {error}", path.display());
            Err(Wrong::new(what, "name a file that this process may read"))
        }
    }
}

fn servers(text: &str) -> Result<String, Wrong> {
    let fix = "write host:port, several with commas, for example \"broker-1:9092,broker-2:9092\"";
    let servers: Vec<&str> = text.split(',').map(str::trim).collect();
    for server in &servers {
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(':') => (host, Some(port)),
            _ => (*server, None),
        };
        if host.is_empty() || host.contains(['/', ' ', '@']) {
            return Err(Wrong::new(format!("{server:?} names no host"), fix));
        }
        if port.is_some_and(|port| !server.ends_with(']') && !port.parse::<u16>().is_ok_and(|port| port > 0)) {
            return Err(Wrong::new(format!("{server:?} has no port from 1 to 65535"), fix));
        }
    }
    Ok(servers.join(","))
}

fn read_properties(section: &Section<'_>) -> BTreeMap<String, String> {
    let mut nodes = BTreeMap::new();
    match section.node("properties") {
        None => {}
        Some(Node { value: Value::Table(table), .. }) => flatten(section, "", table, &mut nodes),
        Some(node) => {
            let what = format!("a table is needed here, this is {}", node.kind());
            section.problem("properties", Wrong::new(what, "write it as a section: [kafka.properties]"));
        }
    }
    let mut properties = BTreeMap::new();
    for (name, node) in nodes {
        let known = text_of(node).and_then(|text| properties::accept(&name, &text).map(|()| text));
        let first = properties::first_name(&name);
        let wrong = match known {
            Ok(_) if properties.contains_key(first) => {
                Wrong::new(format!("{first} and {name} are two names of one property"), "remove one of the two")
            }
            Ok(text) => {
                properties.insert(first.to_owned(), text);
                continue;
            }
            Err(wrong) => wrong,
        };
        section.problem_at(Some(node), &format!("properties.{name}"), wrong);
    }
    properties
}

/// TOML reads `security.protocol = …` as a table in a table: both forms mean the property. A variable wins.
fn flatten<'a>(section: &Section<'_>, prefix: &str, table: &'a TomlTable, into: &mut BTreeMap<String, &'a Node>) {
    for (key, (_, node)) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if let Value::Table(table) = &node.value {
            flatten(section, &name, table, into);
            continue;
        }
        let is_variable = |node: &Node| matches!(node.place, Place::Variable(_));
        match into.get(&name) {
            Some(first) if is_variable(first) => {}
            Some(_) if !is_variable(node) => {
                let wrong = Wrong::new("this property stands here for the second time", "remove one of the two");
                section.problem_at(Some(node), &format!("properties.{name}"), wrong);
            }
            _ => {
                into.insert(name, node);
            }
        }
    }
}

fn text_of(node: &Node) -> Result<String, Wrong> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(yes) => Ok(yes.to_string()),
        Value::Instant(_) | Value::Array(_) | Value::Table(_) => {
            let what = format!("a property is a string, a number or a boolean, this is {}", node.kind());
            Err(Wrong::new(what, "put the value in quotation marks"))
        }
    }
}
