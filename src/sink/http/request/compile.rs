//! The templates and settings of a request, judged together when the configuration is read.

use reqwest::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use reqwest::{Method, Url};

use super::{Content, IDEMPOTENCY_KEY};
use crate::message::Field;
use crate::sink::bound_template::{BoundTemplate, TemplateCompiler};
use crate::sink::http::Body;
use crate::sink::template::Mode;

impl TemplateCompiler {
    pub(super) fn method(&mut self, method: &str) -> Option<Method> {
        let known = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let found = known.into_iter().find(|known| known.as_str() == method);
        if found.is_none() {
            self.problem("method", format!("{method:?} is none of POST, PUT, PATCH, DELETE"));
        }
        found
    }

    /// Scheme, host and port, which must not come from a row: its writer could send requests anywhere.
    pub(super) fn target(&mut self, url: &str) -> Option<String> {
        let literal = url.split('{').next().unwrap_or_default();
        let host_ends = literal.find("://").map(|at| at + 3).and_then(|at| literal[at..].find(['/', '?', '#']));
        if literal.len() < url.len() && host_ends.is_none() {
            self.problem(
                "url",
                "scheme, host and port must be written out, followed by \"/\": a row may not choose them",
            );
            return None;
        }
        match Url::parse(literal) {
            Ok(parsed) if !matches!(parsed.scheme(), "http" | "https") => {
                self.problem("url", "its scheme must be http or https");
            }
            Ok(parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
                self.problem("url", "it must hold no user name or password");
            }
            Ok(parsed) => return Some(parsed.origin().ascii_serialization()),
            Err(error) => self.problem("url", format!("it is no URL: {error}")),
        }
        None
    }

    /// The question goes to the host that gets the requests: the credentials are meant for it.
    pub(super) fn question(&mut self, ask: &str, target: Option<&str>) -> Option<BoundTemplate> {
        let literal = ask.split('{').next().unwrap_or_default();
        let asked = Url::parse(literal).ok().map(|url| url.origin().ascii_serialization());
        let ends = literal.find("://").is_some_and(|at| literal[at + 3..].contains('/'));
        if target.is_some() && (asked.as_deref() != target || !ends) {
            self.problem("ask", "it must begin with the scheme, host and port of url");
            return None;
        }
        self.template("ask", ask, Mode::Url)
    }

    pub(super) fn header_name(&mut self, key: &str, name: &str) -> Option<HeaderName> {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            self.problem(key, "it is no header name");
            return None;
        };
        let own = [HOST, CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, IDEMPOTENCY_KEY];
        if own.contains(&name) {
            self.problem(key, "this header is set by the relay");
            return None;
        }
        Some(name)
    }

    pub(super) fn body(&mut self, body: &Body) -> Option<Content> {
        match body {
            Body::Row => Some(Content::Row(self.field(Field::Row))),
            Body::Template(source) => self.template("body", source, Mode::Text).map(Content::Template),
            Body::Form(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, source)| {
                        Some((name.clone(), self.template(&format!("form.{name}"), source, Mode::Text)?))
                    })
                    .collect();
                fields.into_iter().collect::<Option<_>>().map(Content::Form)
            }
        }
    }
}
