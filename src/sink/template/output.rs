//! Where a template prints to.

use std::{fmt, io};

use minijinja::HtmlEscape;
use percent_encoding::utf8_percent_encode;

use super::{Mode, UNRESERVED};

/// Takes up to `limit` bytes, then refuses.
pub(super) struct Capped {
    pub(super) bytes: Vec<u8>,
    pub(super) limit: usize,
    pub(super) overflown: bool,
}

impl Capped {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, overflown: false }
    }

    /// What was printed.
    pub(super) fn text(self) -> String {
        String::from_utf8(self.bytes).expect("templates and values are UTF-8")
    }
}

impl io::Write for Capped {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.limit {
            self.overflown = true;
            return Err(io::Error::other("more output than the limit"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts what is printed.
struct Length(usize);

impl fmt::Write for Length {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0 += piece.len();
        Ok(())
    }
}

/// How many bytes [`put`] prints.
pub(super) fn length(text: &str, mode: Mode) -> Result<usize, fmt::Error> {
    let mut length = Length(0);
    put(text, mode, &mut length)?;
    Ok(length.0)
}

/// Prints a value as it stands in what the template makes.
pub(super) fn put(text: &str, mode: Mode, output: &mut dyn fmt::Write) -> fmt::Result {
    match mode {
        Mode::Url => utf8_percent_encode(text, UNRESERVED).try_for_each(|piece| output.write_str(piece)),
        Mode::Html => write!(output, "{}", HtmlEscape(text)),
        Mode::Line | Mode::Text => output.write_str(text),
    }
}
