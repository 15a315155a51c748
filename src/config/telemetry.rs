//! `[telemetry]`.

use reqwest::Url;

use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::{sink, value};
use crate::telemetry::traces::{Config, DEFAULT_SAMPLE};

/// None when the section is not there, or is wrong and reported.
pub(super) fn read(section: &Section<'_>) -> Option<Config> {
    if !section.is_present() {
        return None;
    }
    if !Config::is_available() {
        let fix = "remove [telemetry], or use a program that was built with the cargo feature otlp";
        section.problem("otlp", Wrong::new("this program was built without it", fix));
        return None;
    }
    let otlp = section.require("otlp", value::parsed(collector), FIX);
    let sample = section.read("sample", value::share).unwrap_or(DEFAULT_SAMPLE);
    let headers_file = section.read("headers_file", value::path);
    let ca_file = section.read("ca_file", value::path);
    let identity = sink::identity(section);
    Some(Config { otlp: otlp?, sample, headers_file, ca_file, identity })
}

const FIX: &str = "write the address of the collector's OTLP/HTTP port, for example \"http://127.0.0.1:4318\"";

fn collector(text: &str) -> Result<String, Wrong> {
    let url = Url::parse(text).map_err(|error| Wrong::new(format!("not a URL: {error}"), FIX))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Wrong::new("not an http or https URL", FIX));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let fix = "take them out: headers_file can name a file with a line `Authorization: …`";
        return Err(Wrong::new("credentials in a URL are printed wherever the URL is", fix));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Wrong::new("has a query or a fragment, which can hold a secret", FIX));
    }
    if url.path().trim_end_matches('/').ends_with("/v1/traces") {
        return Err(Wrong::new("ends with /v1/traces, which is added to it", "take that out"));
    }
    Ok(text.to_owned())
}

/// As it is read.
pub(super) fn write(lines: &mut TomlLines, config: &Config) {
    lines.section("[telemetry]");
    lines.text("otlp", &config.otlp);
    lines.raw("sample", format_args!("{:?}", config.sample));
    let own = config.identity.as_ref();
    for (key, file) in [
        ("headers_file", config.headers_file.as_ref()),
        ("ca_file", config.ca_file.as_ref()),
        ("cert_file", own.map(|files| &files.certificate)),
        ("key_file", own.map(|files| &files.key)),
    ] {
        if let Some(file) = file {
            lines.text(key, &file.display().to_string());
        }
    }
}
