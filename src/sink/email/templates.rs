//! From a message to a mail: the configuration's templates, compiled once.
//!
//! A row's values get into two headers, the subject and the receiver, and into the body; each is encoded there by the
//! library that builds the mail, and a value that would need more than that (a line break, a second address) makes the
//! row poison. The finished mail is read once more: it has the headers that it should have, once each, and no other.

use std::collections::BTreeMap;
use std::time::SystemTime;

use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox as HeaderMailbox, MessageBuilder, MultiPart, SinglePart};

use super::Config;
use super::address::{self, Mailbox, NoMailbox};
use super::mail::{self, Mail};
use crate::message::{Field, Message};
use crate::sink::bound_template::{BoundTemplate, TemplateCompiler};
use crate::sink::template::Mode;
use crate::sink::{Class, Failure, InvalidSetting};

mod compile;

/// Makes the mails of one relay.
#[derive(Debug)]
pub(super) struct Templates {
    relay: String,
    from: (String, HeaderMailbox),
    reply_to: Option<HeaderMailbox>,
    domain: String,
    to: BoundTemplate,
    choice: Option<BoundTemplate>,
    letters: BTreeMap<String, Letter>,
    fields: Vec<Field>,
}

/// One named template.
#[derive(Debug)]
struct Letter {
    subject: BoundTemplate,
    text: Option<BoundTemplate>,
    html: Option<BoundTemplate>,
}

impl Templates {
    /// # Errors
    /// All settings that cannot work, together.
    pub(super) fn compile(config: &Config, relay: &str) -> Result<Self, Vec<InvalidSetting>> {
        let mut compiler = TemplateCompiler::default();
        let from = compiler.mailbox("from", &config.from);
        let reply_to = config.reply_to.as_ref().map(|mailbox| compiler.mailbox("reply_to", mailbox));
        let to = compiler.template("to", &config.to, Mode::Line);
        let choice = config.template.as_ref().map(|source| compiler.template("template", source, Mode::Line));
        if config.templates.is_empty() {
            compiler.problem("templates", "there is none");
        } else if choice.is_none() && config.templates.len() > 1 {
            compiler.problem("template", "there are several templates, and nothing says which one a row wants");
        }
        let letters: BTreeMap<_, _> = config
            .templates
            .iter()
            .filter_map(|(name, texts)| Some((name.clone(), compiler.letter(name, texts)?)))
            .collect();
        match (from, to) {
            (Some(from), Some(to)) if compiler.problems.is_empty() => Ok(Self {
                relay: relay.to_owned(),
                from: (config.from.address(), from),
                reply_to: reply_to.flatten(),
                domain: config.message_id_domain.clone(),
                to,
                choice: choice.flatten(),
                letters,
                fields: compiler.fields,
            }),
            _ => Err(compiler.problems),
        }
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The mail of `message`, dated `now`.
    ///
    /// # Errors
    /// When the row's values make none: the row is poison.
    pub(super) fn write(&self, message: &Message<'_>, now: SystemTime) -> Result<Mail, Failure> {
        let to = Mailbox::parse(&self.to.render(message)?).map_err(|error| no_receiver(&error))?;
        let header_to = to.to_header().ok_or_else(|| no_receiver(&NoMailbox::Address))?;
        let letter = self.letter(message)?;
        let subject = letter.subject.render(message)?;
        if !address::is_one_line(&subject) {
            return Err(poison(
                "invalid_subject",
                "The subject has a line break, another control character or an encoded word",
            ));
        }
        let message_id = mail::message_id(&self.relay, message.id, message.due_at(), &self.domain);
        let mut builder = lettre::Message::builder().from(self.from.1.clone());
        if let Some(reply_to) = &self.reply_to {
            builder = builder.reply_to(reply_to.clone());
        }
        let builder = builder
            .to(header_to)
            .subject(subject)
            .date(now)
            .raw_header(plain("Message-ID", &message_id))
            .raw_header(plain("Auto-Submitted", "auto-generated"));
        let unfit = || poison("invalid_mail", "The row's values make no mail that every server reads alike");
        let mut content = letter.mail(builder, message)?.ok_or_else(unfit)?;
        if !content.ends_with(b"\r\n") {
            content.extend_from_slice(b"\r\n");
        }
        if !mail::is_sendable(&content) || !self.has_its_headers(&content) {
            return Err(unfit());
        }
        let (id, from) = (message.id.to_owned(), self.from.0.clone());
        Ok(Mail { id, from, to: to.address(), message_id, content })
    }

    fn letter(&self, message: &Message<'_>) -> Result<&Letter, Failure> {
        let Some(choice) = &self.choice else {
            return self.letters.values().next().ok_or_else(|| poison("unknown_template", "There is no template"));
        };
        let name = choice.render(message)?;
        self.letters
            .get(&name)
            .ok_or_else(|| poison("unknown_template", "The row names a template that is not configured"))
    }

    /// Whether the header is made of what belongs there, each once: nothing that a row holds has become a line of it.
    fn has_its_headers(&self, content: &[u8]) -> bool {
        let header = content.split(|byte| *byte == b'\n').take_while(|line| *line != b"\r");
        let names = header
            .filter(|line| !line.starts_with(b" ") && !line.starts_with(b"\t"))
            .map(|line| line.split(|byte| *byte == b':').next().unwrap_or_default().to_ascii_lowercase());
        let mut names: Vec<Vec<u8>> = names.filter(|name| name != b"content-transfer-encoding").collect();
        names.sort();
        let reply_to: &[&str] = if self.reply_to.is_some() { &["reply-to"] } else { &[] };
        let always = ["auto-submitted", "content-type", "date", "from", "message-id", "mime-version", "subject", "to"];
        let mut due: Vec<&[u8]> = always.iter().chain(reply_to).map(|name| name.as_bytes()).collect();
        due.sort_unstable();
        names == due
    }
}

impl Letter {
    /// The whole mail; none when the library cannot build one.
    fn mail(&self, builder: MessageBuilder, message: &Message<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let part = |bound: &Option<BoundTemplate>, kind: ContentType| {
            let rendered = bound.as_ref().map(|bound| bound.render(message)).transpose()?;
            rendered.map(|text| Ok::<_, Failure>((kind, encoded(text)?))).transpose()
        };
        let text = part(&self.text, ContentType::TEXT_PLAIN)?;
        let html = part(&self.html, ContentType::TEXT_HTML)?;
        let single = |(kind, body): (ContentType, Body)| SinglePart::builder().header(kind).body(body);
        Ok(match (text, html) {
            (Some(text), Some(html)) => {
                let parts = MultiPart::alternative().singlepart(single(text)).singlepart(single(html));
                builder.multipart(parts).ok().map(|mail| mail.formatted())
            }
            (Some((kind, body)), None) | (None, Some((kind, body))) => {
                // The library's output grows in steps, with two of a large body in memory: it prints the header only.
                let empty = Body::dangerous_pre_encoded(Vec::new(), body.encoding());
                let header = builder.singlepart(single((kind, empty))).ok().map(|mail| mail.formatted());
                header.map(|header| [header.strip_suffix(b"\r\n").unwrap_or(&header), body.as_ref(), b"\r\n"].concat())
            }
            (None, None) => None,
        })
    }
}

/// The text with CR LF for each end of a line. The library would put in each CR on its own, and move all that follows: for many lines
/// that takes hours.
fn unified(text: &str) -> String {
    let lone = |(at, byte): (usize, u8)| match byte {
        b'\n' => at == 0 || text.as_bytes()[at - 1] != b'\r',
        b'\r' => text.as_bytes().get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    let mut unified = String::with_capacity(text.len() + text.bytes().enumerate().filter(|&end| lone(end)).count());
    let mut rest = text;
    while let Some(at) = rest.find(['\r', '\n']) {
        let (line, end) = rest.split_at(at);
        unified.extend([line, "\r\n"]);
        rest = end.strip_prefix("\r\n").unwrap_or(&end[1..]);
    }
    unified.push_str(rest);
    unified
}

/// A body whose encoding leaves nothing of the text as it is that a server on the way could read as something else.
fn encoded(text: String) -> Result<Body, Failure> {
    let unified = unified(&text);
    drop(text);
    let foreign = unified.bytes().filter(|byte| !byte.is_ascii()).count();
    let encoding = if foreign > unified.len() / 6 {
        ContentTransferEncoding::Base64
    } else {
        ContentTransferEncoding::QuotedPrintable
    };
    Body::new_with_encoding(unified, encoding)
        .map_err(|_| poison("invalid_mail", "The row's values make no mail that every server reads alike"))
}

/// A header whose value needs no encoding.
fn plain(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), value.to_owned(), value.to_owned())
}

fn no_receiver(error: &NoMailbox) -> Failure {
    poison("invalid_mailbox", &format!("The receiver is no mailbox: {error}"))
}

fn poison(code: &str, message: &str) -> Failure {
    let hint = "Correct the row or the template.";
    Failure::of(Class::Poison, code, message, hint)
}

#[cfg(test)]
mod tests;
