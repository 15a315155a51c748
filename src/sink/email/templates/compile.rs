//! The templates and addresses of a mail, judged together when the configuration is read.

use lettre::message::Mailbox as HeaderMailbox;

use super::Letter;
use crate::sink::bound_template::{BoundTemplate, TemplateCompiler};
use crate::sink::email::address::Mailbox;
use crate::sink::email::{Source, Texts};
use crate::sink::template::Mode;

impl TemplateCompiler {
    pub(super) fn mailbox(&mut self, key: &str, mailbox: &Mailbox) -> Option<HeaderMailbox> {
        let header = mailbox.to_header();
        if header.is_none() {
            self.problem(key, "the library that builds mails takes no such address");
        }
        header
    }

    pub(super) fn letter(&mut self, name: &str, texts: &Texts) -> Option<Letter> {
        let subject = self.template(&format!("templates.{name}.subject"), &texts.subject, Mode::Line);
        let text = texts.text.as_ref().map(|source| self.source(&format!("templates.{name}.text"), source, Mode::Text));
        let html = texts.html.as_ref().map(|source| self.source(&format!("templates.{name}.html"), source, Mode::Html));
        if text.is_none() && html.is_none() {
            self.problem(&format!("templates.{name}"), "neither text nor html");
        }
        Some(Letter { subject: subject?, text: text.flatten(), html: html.flatten() })
    }

    fn source(&mut self, key: &str, source: &Source, mode: Mode) -> Option<BoundTemplate> {
        match source {
            Source::Inline(text) => self.template(key, text, mode),
            Source::File(path) => {
                let key = format!("{key}_file");
                match crate::file::text(path) {
                    Ok(text) => self.template(&key, &text, mode),
                    Err(error) => {
                        self.problem(&key, format!("{} cannot be read: {error}", path.display()));
                        None
                    }
                }
            }
        }
    }
}
