//! The templates of a sink's configuration, compiled once, with their columns among the fields that the sink reads of each row.

use super::template::{self, Mode, Template, Unprintable};
use super::{Class, Failure, InvalidSetting};
use crate::message::{Field, Message, TemplateValue};

/// A template, and where its columns stand among the sink's fields.
#[derive(Debug)]
pub(super) struct BoundTemplate {
    pub(super) key: String,
    pub(super) template: Template,
    pub(super) fields: Vec<usize>,
}

impl BoundTemplate {
    /// What it makes of a message.
    ///
    /// # Errors
    /// When the row's values cannot be printed: the row is poison.
    pub(super) fn render(&self, message: &Message<'_>) -> Result<String, Failure> {
        self.text(|number| message.given(self.fields[number]))
    }

    /// The same, of other values than a message's.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub(super) fn text<'a>(&self, value: impl Fn(usize) -> Option<TemplateValue<'a>>) -> Result<String, Failure> {
        self.template.render(value).map_err(|error| self.unprintable(&error))
    }

    /// The failure of a row that cannot be printed.
    pub(super) fn unprintable(&self, error: &Unprintable) -> Failure {
        let message = format!("The template of {} cannot be printed. {error}", self.key);
        Failure::of(Class::Poison, template::FAILED, message, error.hint())
    }
}

/// Collects fields and problems while a sink's configuration is compiled.
#[derive(Default)]
pub(super) struct TemplateCompiler {
    pub(super) fields: Vec<Field>,
    pub(super) problems: Vec<InvalidSetting>,
}

impl TemplateCompiler {
    pub(super) fn problem(&mut self, key: &str, problem: impl Into<String>) {
        self.problems.push(InvalidSetting { key: key.to_owned(), problem: problem.into() });
    }

    /// The template of a key; none when it is none, which is a problem.
    pub(super) fn template(&mut self, key: &str, source: &str, mode: Mode) -> Option<BoundTemplate> {
        match Template::compile(key, source, mode) {
            Ok(template) => {
                let fields = template.columns().iter().map(|column| self.field(Field::Text(column.clone()))).collect();
                Some(BoundTemplate { key: key.to_owned(), template, fields })
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// The number of a field, which is read once however often it is named.
    pub(super) fn field(&mut self, field: Field) -> usize {
        self.fields.iter().position(|known| *known == field).unwrap_or_else(|| {
            self.fields.push(field);
            self.fields.len() - 1
        })
    }
}
