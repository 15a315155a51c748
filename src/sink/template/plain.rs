//! Templates that only print columns: printed from the row itself.
//!
//! The library's values own what they hold. A large column would be in memory three times: in the row, as a value, and as output.
//! A source with anything else in it, and a row with a NULL or JSON, are left to the library.

use std::fmt::{self, Write as _};

use super::Mode;
use super::output::put;
use super::unprintable::Unprintable;
use crate::message::TemplateValue;

/// Both ways must print it alike.
pub(super) const SAMPLE: &str = "a/<b>&\"'{{ }}\u{fc} %\r\n";

/// Texts and columns, one after the other.
pub(super) struct Plain(Vec<Piece>);

enum Piece {
    Text(String),
    Column(usize),
}

impl Plain {
    /// The pieces of a source; none if it has others. `columns` are sorted.
    pub(super) fn of(source: &str, columns: &[String]) -> Option<Self> {
        if source.contains("{%") || source.contains("{#") {
            return None;
        }
        // As the library does with a file's last line.
        let source = source.strip_suffix('\n').map_or(source, |line| line.strip_suffix('\r').unwrap_or(line));
        let (mut pieces, mut rest) = (Vec::new(), source);
        while let Some((before, behind)) = rest.split_once("{{") {
            let (name, after) = behind.split_once("}}")?;
            let column = columns.binary_search_by(|column| column.as_str().cmp(name.trim())).ok()?;
            pieces.extend([Piece::Text(before.to_owned()), Piece::Column(column)]);
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Some(Self(pieces))
    }

    /// Prints to `output`; none, and nothing printed, if only the library can print this row. Its texts are UTF-8.
    pub(super) fn print<'a>(
        &self,
        value: impl Fn(usize) -> Option<TemplateValue<'a>>,
        mode: Mode,
        output: &mut dyn FnMut(&str),
    ) -> Option<Result<(), Unprintable>> {
        let texts: Vec<&str> = self.0.iter().map(|piece| piece.text(&value)).collect::<Option<_>>()?;
        let mut output = Limited { left: mode.limit(), output };
        let printed = self.0.iter().zip(texts).try_for_each(|(piece, text)| match piece {
            Piece::Text(_) => output.write_str(text),
            Piece::Column(_) => put(text, mode, &mut output),
        });
        Some(printed.map_err(|_| Unprintable::TooLarge { limit: mode.limit() }))
    }

    /// The output as one text.
    pub(super) fn text<'a>(
        &self,
        value: impl Fn(usize) -> Option<TemplateValue<'a>>,
        mode: Mode,
    ) -> Option<Result<String, Unprintable>> {
        let mut text = String::new();
        let printed = self.print(value, mode, &mut |piece| text.push_str(piece))?;
        Some(printed.map(|()| text))
    }
}

impl Piece {
    fn text<'p, 'a: 'p>(&'p self, value: impl Fn(usize) -> Option<TemplateValue<'a>>) -> Option<&'p str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Column(column) => match value(*column)? {
                TemplateValue::Text(bytes) => std::str::from_utf8(bytes).ok(),
                TemplateValue::Json(_) => None,
            },
        }
    }
}

/// Passes on so many bytes, then refuses.
struct Limited<'a> {
    left: usize,
    output: &'a mut dyn FnMut(&str),
}

impl fmt::Write for Limited<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.left = self.left.checked_sub(piece.len()).ok_or(fmt::Error)?;
        (self.output)(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Template, Unprintable};
    use super::*;

    fn is_plain(source: &str, mode: Mode) -> bool {
        Template::compile("key", source, mode).expect(source).plain.is_some()
    }

    #[test]
    fn only_texts_and_columns_are_plain() {
        for source in ["", "x", "{{a}}", "{{ a }} b\r\n", "{{ a }}/{{\nb\n}}\n\n", "}} {{ a }}", "{ {{ a }} }"] {
            assert!(is_plain(source, Mode::Text), "{source:?}");
        }
        for source in [
            "{{ a | upper }}",
            "{{- a }}",
            "{{ a -}} b",
            "{{ 'a' }}",
            "{{ 1 }}",
            "{% if a %}{{ a }}{% endif %}",
            "{# a #}{{ a }}",
        ] {
            assert!(!is_plain(source, Mode::Text), "{source:?}");
        }
    }

    proptest! {
        #[test]
        fn plain_output_equals_that_of_library(
            source in "([ab<é/{}\n\r]|\\{\\{ ?[ab] ?\\}\\}){0,8}",
            text in prop::option::of("[a-z<>&\"'/%ü{}\r\n]{0,12}"),
            mode in prop::sample::select(vec![Mode::Url, Mode::Line, Mode::Text, Mode::Html]),
        ) {
            if let Ok(mut template) = Template::compile("key", &source, mode) {
                let render = |template: &Template| template.render(|_| text.as_ref().map(|text| TemplateValue::Text(text.as_bytes())));
                let plain = render(&template);
                template.plain = None;
                prop_assert_eq!(plain, render(&template));
            }
        }
    }

    #[test]
    fn plain_output_is_limited() {
        let template = Template::compile("key", "{{ a }}{{ a }}", Mode::Line).expect("compiles");
        let text = "x".repeat(4097);
        let refused = template.render(|_| Some(TemplateValue::Text(text.as_bytes())));
        assert_eq!(refused, Err(Unprintable::TooLarge { limit: 8192 }));
    }
}
