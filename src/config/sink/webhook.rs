//! `[relay.sink.webhook]`.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::http;
use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::tree::{Node, Value};
use crate::config::value;
use crate::sink::webhook::{self, Config};

const METHODS: &[(&str, &str)] = &[("POST", "POST"), ("PUT", "PUT")];

/// Headers of the signature.
const SIGNED: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

const DEFAULT_BODY_LIMIT: u64 = 1 << 20;
const LARGEST_BODY_LIMIT: u64 = 64 << 20;

pub(super) fn read(section: &Section<'_>, deadline: Duration) -> Option<Config> {
    let body_limit = section.read("body_limit", value::size(1 << 10..=LARGEST_BODY_LIMIT));
    let body_limit = usize::try_from(body_limit.unwrap_or(DEFAULT_BODY_LIMIT)).unwrap_or(usize::MAX);
    let secret_files = read_secrets(section);
    let allow = section.read("allow", ranges).unwrap_or_default();
    let request = http::read_request(section, deadline, METHODS, &SIGNED)?;
    Some(Config { request, secret_files: secret_files?, body_limit, allow })
}

fn read_secrets(section: &Section<'_>) -> Option<Vec<PathBuf>> {
    let one = section.read("secret_file", value::path);
    let several = section.read("secret_files", files);
    match (section.has("secret_file"), section.has("secret_files")) {
        (true, true) => {
            let what = "the secrets are given twice: by secret_file and by secret_files";
            section.problem("secret_files", Wrong::new(what, "remove one of the two"));
            None
        }
        (false, false) => {
            let fix = "write the path of a file that holds the secret (whsec_…), which the receiver knows, too";
            section.missing("secret_file", "missing", fix);
            None
        }
        _ => one.map(|file| vec![file]).or(several),
    }
}

/// The files of one or two secrets.
fn files(node: &Node) -> Result<Vec<PathBuf>, Wrong> {
    let fix = "write one path, or two while a secret is rotated: [\"/run/secrets/new\", \"/run/secrets/old\"]";
    let Value::Array(nodes) = &node.value else {
        return Err(Wrong::new(format!("an array is needed here, this is {}", node.kind()), fix));
    };
    let files = nodes.iter().map(value::path).collect::<Result<Vec<_>, _>>()?;
    match &files[..] {
        [one, two] if one == two => Err(Wrong::new("names the same file twice", fix)),
        [_] | [_, _] => Ok(files),
        _ => Err(Wrong::new(format!("names {} files", files.len()), fix)),
    }
}

/// Ranges of addresses.
fn ranges(node: &Node) -> Result<Vec<IpNet>, Wrong> {
    let Value::Array(nodes) = &node.value else {
        let fix = "write an array, for example [\"10.1.0.0/16\"]";
        return Err(Wrong::new(format!("an array is needed here, this is {}", node.kind()), fix));
    };
    nodes.iter().map(value::parsed(range)).collect()
}

fn range(text: &str) -> Result<IpNet, Wrong> {
    let fix = "write address/bits, for example \"10.1.0.0/16\", \"10.1.2.3/32\" or \"fd12:3456::/32\"";
    let range: IpNet = text.parse().map_err(|_| Wrong::new(format!("{text:?} is no range of addresses"), fix))?;
    if range.trunc() != range {
        let what = format!("{text:?} has bits set behind its first {}", range.prefix_len());
        return Err(Wrong::new(what, format!("write \"{}\"", range.trunc())));
    }
    if matches!(range, IpNet::V6(range) if range.addr().to_ipv4_mapped().is_some()) {
        return Err(Wrong::new(
            format!("{text:?} is IPv4 in the form of IPv6"),
            "write the IPv4 range: it counts for both",
        ));
    }
    if webhook::is_never_open(&range) {
        let what = format!("{text:?} is where clouds give out credentials: nothing opens it");
        return Err(Wrong::new(what, "remove it"));
    }
    Ok(range)
}
