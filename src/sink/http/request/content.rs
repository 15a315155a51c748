//! The body of a request, rendered with the values of a message.

use std::borrow::Cow;

use percent_encoding::utf8_percent_encode;

use crate::message::Message;
use crate::sink::Failure;
use crate::sink::bound_template::BoundTemplate;
use crate::sink::template::UNRESERVED;

/// The body of a request.
#[derive(Debug)]
pub(super) enum Content {
    Row(usize),
    Template(BoundTemplate),
    Form(Vec<(String, BoundTemplate)>),
}

impl BoundTemplate {
    /// Appends the value of a field of a form.
    fn append(&self, message: &Message<'_>, form: &mut String) -> Result<(), Failure> {
        let mut append = |piece: &str| form.extend(utf8_percent_encode(piece, UNRESERVED));
        let value = |number: usize| message.given(self.fields[number]);
        self.template.render_to(value, &mut append).map_err(|error| self.unprintable(&error))
    }
}

impl Content {
    pub(super) const fn content_type(&self) -> &'static str {
        match self {
            Self::Row(_) => "application/json",
            Self::Template(_) => "text/plain; charset=utf-8",
            Self::Form(_) => "application/x-www-form-urlencoded",
        }
    }

    pub(super) fn render<'a>(&self, message: &Message<'a>) -> Result<Cow<'a, [u8]>, Failure> {
        match self {
            Self::Row(field) => Ok(Cow::Borrowed(message.value(*field).unwrap_or(b"null"))),
            Self::Template(text) => Ok(Cow::Owned(text.render(message)?.into_bytes())),
            Self::Form(fields) => {
                let mut form = String::new();
                for (name, value) in fields {
                    if !form.is_empty() {
                        form.push('&');
                    }
                    form.extend(utf8_percent_encode(name, UNRESERVED));
                    form.push('=');
                    value.append(message, &mut form)?;
                }
                Ok(Cow::Owned(form.into_bytes()))
            }
        }
    }
}
