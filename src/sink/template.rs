//! Strict templates over a row's columns.
//!
//! A template sees the columns that it names, as PostgreSQL's text, and nothing else: no environment, no files, no
//! other templates, no functions. Of an action it sees numbers, lists and objects as such. What could go wrong silently is an error instead: a NULL that is printed without
//! `default()`, an undefined value, output beyond the limit. What a row can cost is bounded: depth and size of its JSON, the steps
//! over it, their CPU time, and what filters, operators and blocks make of it. In a URL every printed value is percent-encoded, so that a
//! hostile value stays inside the place that the template gives it. In HTML it is escaped, also where the template says
//! `autoescape false`; the filter `safe` does not exist.
//!
//! Only columns whose names are identifiers (letters, digits and `_`, not beginning with a digit) can be used; case
//! counts, so `{{ createdAt }}` is the column `"createdAt"`. Other columns are reached through a view.

use std::collections::BTreeSet;
use std::time::Duration;

use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

use super::InvalidSetting;
use crate::message::TemplateValue;

mod apart;
mod errors;
mod filters;
mod json;
mod marks;
mod operators;
mod output;
mod plain;
mod unprintable;
mod work;

use errors::{cause, describe, failed, is_broken};
use output::Capped;
use plain::Plain;

pub use unprintable::Unprintable;

/// RFC 3986's unreserved characters stay; everything else is encoded.
pub(super) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const NAME: &str = "template";
/// The code of a row for which a template cannot be printed.
pub(super) const FAILED: &str = "template";

/// The most steps of a template for one row. A loop over 100,000 elements takes about a dozen for each; loops inside each other over
/// what a row gives would take hours.
const STEPS: u64 = 20_000_000;

/// What a template's output is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A URL: printed values are percent-encoded, and no path segment may be `.` or `..`.
    Url,
    /// A single line, for example a header's value or a topic.
    Line,
    /// A text of up to 8 MiB.
    Text,
    /// HTML of up to 8 MiB: printed values are escaped, and no template can switch that off.
    Html,
}

impl Mode {
    /// The most bytes of output.
    #[must_use]
    pub const fn limit(self) -> usize {
        match self {
            Self::Url | Self::Line => 8 << 10,
            Self::Text | Self::Html => 8 << 20,
        }
    }
}

/// A compiled template.
pub struct Template {
    environment: Box<Environment<'static>>,
    columns: Vec<String>,
    mode: Mode,
    plain: Option<Plain>,
    apart: apart::Apart,
}

/// The formatter's own mark on an error, to tell a printed NULL from other failures.
#[derive(Debug, thiserror::Error)]
#[error("NULL")]
struct PrintedNull;

impl Template {
    /// Compiles `source`; `key` names it in errors.
    ///
    /// # Errors
    /// When the template is broken, or calls what does not exist. The latter is found by printing it with made-up
    /// values, so a branch that these do not take is judged only when a row takes it.
    pub fn compile(key: &str, source: &str, mode: Mode) -> Result<Self, InvalidSetting> {
        Self::compile_within(key, source, mode, work::CPU)
    }

    /// The same with another limit of CPU time for a row.
    fn compile_within(key: &str, source: &str, mode: Mode, cpu: Duration) -> Result<Self, InvalidSetting> {
        let mut environment = environment(mode, cpu);
        let invalid = |error: &Error| InvalidSetting { key: key.to_owned(), problem: describe(error) };
        // With its marks a source that has an error may have none, or another one.
        environment.template_from_str(source).map_err(|error| invalid(&error))?;
        environment.add_template_owned(NAME, marks::marked(source)).map_err(|error| invalid(&error))?;
        let columns: BTreeSet<String> = environment
            .get_template(NAME)
            .map_err(|error| invalid(&error))?
            .undeclared_variables(false)
            .into_iter()
            .collect();
        let columns: Vec<String> = columns.into_iter().collect();
        let plain = Plain::of(source, &columns);
        let mut template =
            Self { environment: Box::new(environment), columns, mode, plain, apart: apart::Apart::default() };
        for sample in [Some(TemplateValue::Text(b"0")), None] {
            let mut output = Capped::new(mode.limit());
            if let Err(error) = template.print(|_| sample, &mut output)
                && is_broken(error.kind())
            {
                return Err(invalid(&error));
            }
        }
        template.plain = template.plain.take().filter(|plain| template.agrees(plain));
        Ok(template)
    }

    /// Whether the library prints the same.
    fn agrees(&self, plain: &Plain) -> bool {
        let sample = |_| Some(TemplateValue::Text(plain::SAMPLE.as_bytes()));
        let mut output = Capped::new(self.mode.limit());
        let printed = self.print(sample, &mut output).is_ok();
        let text = plain.text(sample, self.mode);
        printed && text.is_some_and(|text| text.is_ok_and(|text| text.as_bytes() == output.bytes))
    }

    /// The columns that the template may print or test, sorted.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Prints the template; `value` gives the column number n of [`Self::columns`], `None` for NULL.
    ///
    /// # Errors
    /// When this row cannot be printed.
    pub fn render<'a>(&self, value: impl Fn(usize) -> Option<TemplateValue<'a>>) -> Result<String, Unprintable> {
        self.are_texts(&value)?;
        let plain = self.plain.as_ref().and_then(|plain| plain.text(&value, self.mode));
        let text = plain.unwrap_or_else(|| {
            let read = (0..self.columns.len()).filter_map(&value).map(|value| match value {
                TemplateValue::Text(bytes) | TemplateValue::Json(bytes) => bytes.len(),
            });
            self.apart.run(read.sum(), || self.printed(&value))
        })?;
        if self.mode == Mode::Url && has_dot_segment(&text) {
            return Err(Unprintable::Traversal);
        }
        Ok(text)
    }

    /// The same, piece by piece if the output need not be looked at as a whole: a large one is not in memory then. What was given
    /// to `output` before an error is worthless.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_to<'a>(
        &self,
        value: impl Fn(usize) -> Option<TemplateValue<'a>>,
        output: &mut dyn FnMut(&str),
    ) -> Result<(), Unprintable> {
        if self.mode != Mode::Url {
            self.are_texts(&value)?;
            if let Some(printed) = self.plain.as_ref().and_then(|plain| plain.print(&value, self.mode, output)) {
                return printed;
            }
        }
        self.render(value).map(|text| output(&text))
    }

    fn are_texts<'a>(&self, value: impl Fn(usize) -> Option<TemplateValue<'a>>) -> Result<(), Unprintable> {
        let is_text = |number| match value(number) {
            Some(TemplateValue::Text(bytes)) => std::str::from_utf8(bytes).is_ok(),
            Some(TemplateValue::Json(_)) | None => true,
        };
        match self.columns.iter().enumerate().find(|(number, _)| !is_text(*number)) {
            Some((_, column)) => Err(Unprintable::NotText { column: column.clone() }),
            None => Ok(()),
        }
    }

    /// What the library prints.
    fn printed<'a>(&self, value: impl Fn(usize) -> Option<TemplateValue<'a>>) -> Result<String, Unprintable> {
        let mut output = Capped::new(self.mode.limit());
        if let Err(error) = self.print(&value, &mut output) {
            return Err(if output.overflown {
                Unprintable::TooLarge { limit: output.limit }
            } else if let Some(refused) = cause::<json::NotJson>(&error) {
                match *refused {
                    json::NotJson::TooDeep { levels } => Unprintable::TooDeep { levels, limit: json::DEEPEST },
                    json::NotJson::TooLarge { bytes } => Unprintable::JsonTooLarge { bytes, limit: json::LONGEST },
                    json::NotJson::NoJson => failed(&error),
                }
            } else if let Some(exhausted) = cause::<work::Exhausted>(&error) {
                Unprintable::from(*exhausted)
            } else if cause::<PrintedNull>(&error).is_some() {
                let nulls = self.columns.iter().enumerate().filter(|(number, _)| value(*number).is_none());
                Unprintable::Null { columns: nulls.map(|(_, column)| column.clone()).collect() }
            } else if error.kind() == ErrorKind::OutOfFuel {
                Unprintable::TooLong { limit: STEPS }
            } else {
                failed(&error)
            });
        }
        Ok(output.text())
    }

    fn print<'a>(&self, value: impl Fn(usize) -> Option<TemplateValue<'a>>, output: &mut Capped) -> Result<(), Error> {
        let mut read = json::Read::default();
        let row = self.columns.iter().enumerate().map(|(number, column)| {
            let value = match value(number) {
                None => Value::from(()),
                Some(TemplateValue::Text(bytes)) => Value::from(String::from_utf8_lossy(bytes).as_ref()),
                Some(TemplateValue::Json(bytes)) => read.column(bytes)?,
            };
            Ok((column.as_str(), value))
        });
        let row = Value::from_pairs(row.collect::<Result<Vec<_>, Error>>()?);
        self.environment.get_template(NAME)?.render_captured_to(row, output).map(drop)
    }
}

impl std::fmt::Debug for Template {
    /// Without the source: it may hold a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("columns", &self.columns).field("mode", &self.mode).finish_non_exhaustive()
    }
}

fn environment(mode: Mode, cpu: Duration) -> Environment<'static> {
    let mut environment = Environment::new();
    // The formatter below escapes by the mode; this one makes blocks that were printed once not be escaped twice.
    environment.set_auto_escape_callback(move |_| if mode == Mode::Html { AutoEscape::Html } else { AutoEscape::None });
    filters::add(&mut environment, cpu);
    if mode == Mode::Html {
        environment.remove_filter("safe");
    }
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(false);
    environment.set_fuel(Some(STEPS));
    let globals: Vec<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
    for name in globals {
        environment.remove_global(&name);
    }
    // The library's own `default` is for undefined values only; here a NULL is what needs one.
    for name in ["default", "d"] {
        environment.add_filter(name, |value: Value, other: Option<Value>| {
            if value.is_none() || value.is_undefined() { other.unwrap_or_else(|| Value::from("")) } else { value }
        });
    }
    environment.add_filter("tojson", |value: Value| match value.as_str() {
        Some(text) => Ok(Value::from(serde_json::Value::from(text).to_string())),
        None if value.is_none() => Ok(Value::from("null")),
        None => json::text(&value).map(|text| Value::from(text.into_owned())),
    });
    environment.add_filter("fromjson", |state: &mut State<'_, '_>, value: Value| json::from_json(state, &value));
    environment.set_formatter(move |output, state, value| {
        if value.is_none() {
            return Err(Error::new(ErrorKind::InvalidOperation, "NULL is printed").with_source(PrintedNull));
        }
        let text = json::text(value)?;
        // Blocks that were printed once are not escaped twice.
        let mode = if mode == Mode::Html && value.is_safe() { Mode::Text } else { mode };
        // A block may keep it, which the limit of the output does not see.
        work::makes(state, output::length(&text, mode)?)?;
        Ok(output::put(&text, mode, output)?)
    });
    environment
}

/// Whether the path has a segment that URL parsers take as "here" or "up", in any spelling that they accept.
fn has_dot_segment(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.split(['/', '\\']).any(|segment| {
        let plain = segment.replace("%2e", ".").replace("%2E", ".");
        plain == "." || plain == ".."
    })
}

#[cfg(test)]
mod garbled_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod tests;
