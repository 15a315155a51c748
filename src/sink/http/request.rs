//! From a message to a request: all of the configuration's templates, compiled once.
//!
//! The scheme and host of the URL are the operator's text, never a row's. A value that does not fit its place (a line
//! break in a header) makes the row poison; nothing is stripped or replaced.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use reqwest::{Method, Request, Url};

use super::{Body, Config};
use crate::message::{Field, Message};
use crate::sink::template::{Mode, Template, UNRESERVED};
use crate::sink::{Class, Failure, InvalidSetting};

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What cannot stand in a header, and `%`, so that different ids stay different.
const NOT_IN_KEY: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Makes the requests of one relay.
#[derive(Debug)]
pub(super) struct Requests {
    method: Method,
    /// Scheme, host and port: what may be shown to people.
    target: String,
    url: Bound,
    headers: Vec<(HeaderName, Bound)>,
    body: Content,
    ask: Option<Bound>,
    key_prefix: String,
    fields: Vec<Field>,
}

/// A template, and where its columns stand among the sink's fields.
#[derive(Debug)]
struct Bound {
    key: String,
    template: Template,
    fields: Vec<usize>,
}

#[derive(Debug)]
enum Content {
    Row(usize),
    Template(Bound),
    Form(Vec<(String, Bound)>),
}

/// Collects fields and problems while the configuration is compiled.
#[derive(Default)]
struct Compiler {
    fields: Vec<Field>,
    problems: Vec<InvalidSetting>,
}

impl Requests {
    pub(super) fn compile(config: &Config, relay: &str) -> Result<Self, Vec<InvalidSetting>> {
        let mut compiler = Compiler::default();
        let method = compiler.method(&config.method);
        let target = compiler.target(&config.url);
        let url = compiler.template("url", &config.url, Mode::Url);
        let mut headers: Vec<(HeaderName, Bound)> = Vec::new();
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
        let key_prefix = format!("{}/", utf8_percent_encode(relay, NOT_IN_KEY));
        match (method, target, url, body) {
            (Some(method), Some(target), Some(url), Some(body)) if compiler.problems.is_empty() => {
                Ok(Self { method, target, url, headers, body, ask, key_prefix, fields: compiler.fields })
            }
            _ => Err(compiler.problems),
        }
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
        let url = self.rendered_url(&self.url, message)?;
        let mut request = Request::new(self.method.clone(), url);
        let headers = request.headers_mut();
        let (body, content_type) = self.body.render(message)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.add_configured(headers, message)?;
        self.add_key(headers, message.id)?;
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        *request.body_mut() = Some(body.into());
        Ok(request)
    }

    /// The headers of the configuration.
    pub(super) fn add_configured(&self, headers: &mut HeaderMap, message: &Message<'_>) -> Result<(), Failure> {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), header(&value.key, &value.render(message)?)?);
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

    fn rendered_url(&self, template: &Bound, message: &Message<'_>) -> Result<Url, Failure> {
        let text = template.render(message)?;
        let url = Url::parse(&text).ok().filter(|url| url.origin().ascii_serialization() == self.target);
        url.ok_or_else(|| poison("invalid_url", "The row's values make no valid URL".to_owned()))
    }

    fn add_key(&self, headers: &mut HeaderMap, id: &str) -> Result<(), Failure> {
        let key = format!("{}{}", self.key_prefix, utf8_percent_encode(id, NOT_IN_KEY));
        headers.insert(IDEMPOTENCY_KEY, header("Idempotency-Key", &key)?);
        Ok(())
    }
}

impl Bound {
    fn render(&self, message: &Message<'_>) -> Result<String, Failure> {
        self.text(|number| message.value(self.fields[number]))
    }

    fn text<'a>(&self, value: impl Fn(usize) -> Option<&'a [u8]>) -> Result<String, Failure> {
        self.template
            .render(value)
            .map_err(|error| poison("template", format!("The template of {} cannot be printed. {error}", self.key)))
    }
}

impl Content {
    fn render(&self, message: &Message<'_>) -> Result<(Vec<u8>, &'static str), Failure> {
        match self {
            Self::Row(field) => Ok((message.value(*field).unwrap_or(b"null").to_vec(), "application/json")),
            Self::Template(text) => Ok((text.render(message)?.into_bytes(), "text/plain; charset=utf-8")),
            Self::Form(fields) => {
                let mut form = String::new();
                for (name, value) in fields {
                    let value = value.render(message)?;
                    let separator = if form.is_empty() { "" } else { "&" };
                    let (name, value) =
                        (utf8_percent_encode(name, UNRESERVED), utf8_percent_encode(&value, UNRESERVED));
                    form.push_str(&format!("{separator}{name}={value}"));
                }
                Ok((form.into_bytes(), "application/x-www-form-urlencoded"))
            }
        }
    }
}

impl Compiler {
    fn problem(&mut self, key: &str, problem: impl Into<String>) {
        self.problems.push(InvalidSetting { key: key.to_owned(), problem: problem.into() });
    }

    fn method(&mut self, method: &str) -> Option<Method> {
        let known = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let found = known.into_iter().find(|known| known.as_str() == method);
        if found.is_none() {
            self.problem("method", format!("{method:?} is none of POST, PUT, PATCH, DELETE"));
        }
        found
    }

    /// Scheme, host and port, which must not come from a row: its writer could send requests anywhere.
    fn target(&mut self, url: &str) -> Option<String> {
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
    fn question(&mut self, ask: &str, target: Option<&str>) -> Option<Bound> {
        let literal = ask.split('{').next().unwrap_or_default();
        let asked = Url::parse(literal).ok().map(|url| url.origin().ascii_serialization());
        let ends = literal.find("://").is_some_and(|at| literal[at + 3..].contains('/'));
        if target.is_some() && (asked.as_deref() != target || !ends) {
            self.problem("ask", "it must begin with the scheme, host and port of url");
            return None;
        }
        self.template("ask", ask, Mode::Url)
    }

    fn template(&mut self, key: &str, source: &str, mode: Mode) -> Option<Bound> {
        match Template::compile(key, source, mode) {
            Ok(template) => {
                let fields = template.columns().iter().map(|column| self.field(Field::Text(column.clone()))).collect();
                Some(Bound { key: key.to_owned(), template, fields })
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    fn header_name(&mut self, key: &str, name: &str) -> Option<HeaderName> {
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

    fn body(&mut self, body: &Body) -> Option<Content> {
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

    fn field(&mut self, field: Field) -> usize {
        self.fields.iter().position(|known| *known == field).unwrap_or_else(|| {
            self.fields.push(field);
            self.fields.len() - 1
        })
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
        hint: "Mend the row or the template; a NULL that may occur needs default(\"…\")".to_owned(),
        retry_after: None,
    }
}

#[cfg(test)]
mod tests;
