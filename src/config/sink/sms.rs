//! `[relay.sink.sms]`.

use std::time::Duration;

use super::{http, template};
use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::{requests, turn, value};
use crate::secret::Secret;
use crate::sink::sms::{Config, Provider};

const PROVIDERS: &[(&str, Provider)] = &[("twilio", Provider::Twilio)];
const TWILIO: &str = "https://api.twilio.com";

pub(super) fn read(section: &Section<'_>, deadline: Duration) -> Option<Config> {
    let base_url = section.read("base_url", value::parsed(base_url)).unwrap_or_else(|| TWILIO.to_owned());
    let timeout = turn::read_timeout(section, deadline);
    let rate_per_second = section.read("rate_per_second", value::rate);
    let provider = section.require("provider", value::word(PROVIDERS, &[]), "write provider = \"twilio\"");
    let account_sid = section.require("account_sid", value::parsed(account_sid), "write the account's SID");
    let auth_token = read_token(section);
    let from = section.require("from", value::text, "write the sender's number, for example \"+15550000000\"");
    let to = section.require("to", value::parsed(template::parse), "write a template, for example \"{{ phone }}\"");
    let text = section.require("text", value::parsed(template::parse), "write a template of the text");
    Some(Config {
        provider: provider?,
        base_url,
        account_sid: account_sid?,
        auth_token: auth_token?,
        from: from?,
        to: to?,
        text: text?,
        timeout,
        rate_per_second,
        key_memory: requests::key_memory(section),
    })
}

fn base_url(text: &str) -> Result<String, Wrong> {
    let url = http::url(text)?;
    if !template::is_fixed(&url) || url.contains('?') {
        return Err(Wrong::new("not a fixed address", format!("write scheme and host, for example \"{TWILIO}\"")));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// It becomes a part of the path.
fn account_sid(text: &str) -> Result<String, Wrong> {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new("not an account's SID", "write it as the provider shows it: letters and digits"))
    }
}

fn read_token(section: &Section<'_>) -> Option<Secret> {
    let file = section.read("auth_token_file", value::path);
    let token = section.read("auth_token", value::text);
    match (section.has("auth_token"), section.has("auth_token_file")) {
        (true, true) => {
            let what = "the token is given twice: by auth_token and by auth_token_file";
            section.problem("auth_token", Wrong::new(what, "remove auth_token"));
            None
        }
        (false, false) => {
            let fix = "write the path of a file that holds the token";
            section.missing("auth_token_file", "missing", fix);
            None
        }
        _ => file.map(Secret::File).or(token.map(|token| Secret::Value(token.into()))),
    }
}
