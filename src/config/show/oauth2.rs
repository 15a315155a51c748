//! `oauth2` as the reader would take it.

use super::TomlLines;
use crate::config::oauth2::CLIENT_AUTHS;
use crate::sink::http::oauth2::Config;

/// The keys of its section.
pub(in crate::config) fn lines(lines: &mut TomlLines, config: &Config) {
    lines.text("token_url", &config.token_url);
    lines.text("client_id", &config.client_id);
    lines.text("client_secret_file", &config.client_secret_file.display().to_string());
    for (key, value) in [("scope", &config.scope), ("audience", &config.audience)] {
        if let Some(value) = value {
            lines.text(key, value);
        }
    }
    if let Some(file) = &config.ca_file {
        lines.text("ca_file", &file.display().to_string());
    }
    let auth = CLIENT_AUTHS.iter().find(|(_, auth)| *auth == config.client_auth).map_or("", |(word, _)| word);
    lines.text("client_auth", auth);
}
