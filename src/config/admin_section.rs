//! `[admin]`.

use super::problem::Wrong;
use super::section::Section;
use super::{listen, value};
use crate::admin::Config;

/// None when something in it is wrong and reported.
pub(super) fn read(section: &Section<'_>) -> Option<Config> {
    let default = Config::default();
    let token_file = section.read("token_file", value::path);
    let token_for_metrics = section.read("token_for_metrics", value::boolean).unwrap_or(default.token_for_metrics);
    if token_for_metrics && !section.has("token_file") {
        let fix = "add token_file = \"/run/secrets/admin-tokens\", or remove this key";
        section.problem("token_for_metrics", Wrong::new("no token is configured that could be asked for", fix));
        return None;
    }
    let listen = if section.has("listen") { section.read("listen", value::parsed(listen))? } else { default.listen };
    Some(Config { listen, token_file, token_for_metrics })
}
