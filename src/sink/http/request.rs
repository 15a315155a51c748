//! From a message to a request: all of the configuration's templates, compiled once.
//!
//! The scheme and host of the URL are the operator's text, never a row's. A value that does not fit its place (a line
//! break in a header) makes the row poison; nothing is stripped or replaced.

use std::borrow::Cow;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, Url};

use super::Config;
use crate::message::{Field, Message};
use crate::sink::bound_template::{BoundTemplate, TemplateCompiler};
use crate::sink::template::Mode;
use crate::sink::{Class, Failure, InvalidSetting, Mark, Subject, idempotency_key, row_headers};
use crate::visible::visible;
use content::Content;

mod compile;
mod content;

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Marks a request that an operator had sent again.
const REPLAYED: HeaderName = HeaderName::from_static("outbox-replayed");
/// Marks one whose row became visible behind its cursor's position.
const LATE: HeaderName = HeaderName::from_static("outbox-late");

/// The header of a mark.
pub(super) const fn marking(mark: Mark) -> HeaderName {
    match mark {
        Mark::Replayed => REPLAYED,
        Mark::Late => LATE,
    }
}

/// Headers that the HTTP client writes, and those between it and the next hop.
const OF_CONNECTION: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Makes the requests of one relay.
#[derive(Debug)]
pub(super) struct Requests {
    method: Method,
    /// Scheme, host and port: what may be shown to people.
    target: String,
    url: BoundTemplate,
    headers: Vec<(HeaderName, BoundTemplate)>,
    body: Content,
    ask: Option<BoundTemplate>,
    relay: String,
    fields: Vec<Field>,
    /// The field with an object of further headers.
    own: Option<usize>,
}

impl Requests {
    pub(super) fn compile(config: &Config, relay: &str) -> Result<Self, Vec<InvalidSetting>> {
        let mut compiler = TemplateCompiler::default();
        let method = compiler.method(&config.method);
        let target = compiler.target(&config.url);
        let url = compiler.template("url", &config.url, Mode::Url);
        let mut headers: Vec<(HeaderName, BoundTemplate)> = Vec::new();
        for (name, source) in &config.headers {
            let key = format!("headers.{name}");
            if let (Some(name), Some(value)) =
                (compiler.header_name(&key, name), compiler.template(&key, source, Mode::Line))
            {
                if headers.iter().any(|(other, _)| *other == name) {
                    compiler.problem(&key, "this header is given twice: case does not count in their names");
                }
                headers.push((name, value));
            }
        }
        let body = compiler.body(&config.body);
        let ask = config.once.ask.as_ref().and_then(|ask| compiler.question(ask, target.as_deref()));
        let relay = relay.to_owned();
        match (method, target, url, body) {
            (Some(method), Some(target), Some(url), Some(body)) if compiler.problems.is_empty() => {
                Ok(Self { method, target, url, headers, body, ask, relay, fields: compiler.fields, own: None })
            }
            _ => Err(compiler.problems),
        }
    }

    /// Passes on the headers of each row from now on.
    pub(super) fn pass_on_headers(&mut self) {
        let field = Field::Text(row_headers::COLUMN.to_owned());
        let own = self.fields.iter().position(|known| *known == field);
        self.own = own.or_else(|| {
            self.fields.push(field);
            Some(self.fields.len() - 1)
        });
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Scheme, host and port.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The request for `message`.
    ///
    /// # Errors
    /// When the row's values cannot be sent: the row is poison.
    pub(super) fn build(&self, message: &Message<'_>, authorization: Option<&HeaderValue>) -> Result<Request, Failure> {
        let mut request = self.head(message, authorization)?;
        *request.body_mut() = Some(self.body.render(message)?.into_owned().into());
        Ok(request)
    }

    /// The body of the request for `message`, when one can be made of it.
    pub(super) fn body<'a>(&self, message: &Message<'a>) -> Option<Cow<'a, [u8]>> {
        self.head(message, None).and_then(|_| self.body.render(message)).ok()
    }

    /// How long the body is, where that is known before it is made.
    pub(super) fn body_length(&self, message: &Message<'_>) -> Option<usize> {
        match &self.body {
            Content::Row(field) => message.value(*field).map(<[u8]>::len),
            Content::Template(_) | Content::Form(_) => None,
        }
    }

    /// The request for `message` without its body.
    fn head(&self, message: &Message<'_>, authorization: Option<&HeaderValue>) -> Result<Request, Failure> {
        let url = self.rendered_url(&self.url, message)?;
        let mut request = Request::new(self.method.clone(), url);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.body.content_type()));
        self.add_configured(headers, message)?;
        self.add_key(headers, message)?;
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        self.add_own(headers, message)?;
        Ok(request)
    }

    /// The headers of the configuration.
    pub(super) fn add_configured(&self, headers: &mut HeaderMap, message: &Message<'_>) -> Result<(), Failure> {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), header(&value.key, &value.render(message)?)?);
        }
        Ok(())
    }

    /// The headers that the row brings along, but those that are there already, are the connection's or the relay's own.
    fn add_own(&self, headers: &mut HeaderMap, message: &Message<'_>) -> Result<(), Failure> {
        for (name, value) in row_headers::of(self.own.and_then(|field| message.value(field)))? {
            let key = format!("headers.{name}");
            let name = HeaderName::try_from(name)
                .map_err(|_| poison("invalid_header", format!("{} is no name of a header", visible(&key))))?;
            let taken = [REPLAYED, LATE].contains(&name)
                || headers.contains_key(&name)
                || OF_CONNECTION.contains(&name.as_str());
            if let Some(value) = value.filter(|_| !taken) {
                let value = header(&visible(&key), &value)?;
                headers.try_insert(name, value).map_err(|_| {
                    poison("invalid_header", "The request has more headers than fit into one".to_owned())
                })?;
            }
        }
        Ok(())
    }

    /// Whether no row has a part in the configured header of that name.
    pub(super) fn is_constant(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|(other, value)| other == name && value.fields.is_empty())
    }

    /// The headers that no row has a part in.
    pub(super) fn add_constants(&self, headers: &mut HeaderMap) -> Result<(), Failure> {
        for (name, value) in self.headers.iter().filter(|(_, value)| value.fields.is_empty()) {
            headers.insert(name.clone(), header(&value.key, &value.text(|_| None)?)?);
        }
        Ok(())
    }

    /// The URL, when no row has a part in it.
    pub(super) fn constant_url(&self) -> Option<Url> {
        Url::parse(&self.url.text(|_| None).ok().filter(|_| self.url.fields.is_empty())?).ok()
    }

    /// Where to ask whether the receiver has the message; none where that cannot be asked.
    pub(super) fn question(&self, message: &Message<'_>) -> Result<Option<Url>, Failure> {
        self.ask.as_ref().map(|ask| self.rendered_url(ask, message)).transpose()
    }

    /// The URL of a path and query at the configured host.
    pub(super) fn at(&self, target: &str) -> Option<Url> {
        let url = Url::parse(&format!("{}{target}", self.target)).ok()?;
        (target.starts_with('/') && url.origin().ascii_serialization() == self.target).then_some(url)
    }

    fn rendered_url(&self, template: &BoundTemplate, message: &Message<'_>) -> Result<Url, Failure> {
        let text = template.render(message)?;
        let url = Url::parse(&text).ok().filter(|url| url.origin().ascii_serialization() == self.target);
        url.ok_or_else(|| poison("invalid_url", "The row's values make no valid URL".to_owned()))
    }

    pub(super) fn relay(&self) -> &str {
        &self.relay
    }

    /// The same key for each attempt of a message, another for each other message.
    fn add_key(&self, headers: &mut HeaderMap, message: &Message<'_>) -> Result<(), Failure> {
        let key = idempotency_key::of(&self.relay, message);
        headers.insert(IDEMPOTENCY_KEY, header("Idempotency-Key", &key)?);
        Ok(())
    }
}

/// ASCII only: what receivers make of other bytes in a header differs.
fn header(key: &str, text: &str) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_str(text).ok().filter(|_| text.is_ascii());
    let mut value = value.ok_or_else(|| {
        poison("invalid_header", format!("The value of {key} has a character that no header may hold"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn poison(code: &str, message: String) -> Failure {
    Failure {
        class: Class::Poison,
        ambiguous: false,
        code: code.to_owned(),
        message,
        hint: "Correct the row or the template.".to_owned(),
        subject: Subject::Message,
        retry_after: None,
    }
}

#[cfg(test)]
mod tests;
