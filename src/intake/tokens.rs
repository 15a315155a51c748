//! Who may ask: bearer tokens from a file, one a line, so that two are valid while they are rotated.
//!
//! The file is read at each request: a changed one counts at once, and nothing of it stays in memory. Tokens are compared
//! by their digests, all of them each time, so that the time of an answer tells nothing.

use std::path::PathBuf;

use axum::http::{HeaderMap, header};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::problem::Problem;

/// Shorter ones could be guessed, longer ones pass no header limit.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=1024;

/// The file of tokens.
#[derive(Clone, Debug)]
pub struct Tokens {
    file: PathBuf,
}

/// There is no token that could be accepted, or one that never will be.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read [intake] token_file {file}: {source}")]
    Unreadable {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It has no token.
    #[error("[intake] token_file {0} holds no token: write one a line, for example from `openssl rand -hex 32`")]
    Empty(PathBuf),
    /// A line of it is no token.
    #[error(
        "[intake] token_file {file}: line {line} is no token: 16 to 1024 visible ASCII characters, for example from `openssl \
         rand -hex 32`"
    )]
    Malformed {
        /// Which file.
        file: PathBuf,
        /// Which line, counted from 1.
        line: usize,
    },
}

impl Tokens {
    /// Of this file.
    #[must_use]
    pub const fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Whether there is at least one token, and every line is one.
    ///
    /// # Errors
    /// What is wrong, without the line's text.
    pub fn verify(&self) -> Result<(), TokenError> {
        let text = self.read().map_err(|source| TokenError::Unreadable { file: self.file.clone(), source })?;
        for (number, line) in lines(&text) {
            if !is_token(line) {
                return Err(TokenError::Malformed { file: self.file.clone(), line: number });
            }
        }
        if lines(&text).next().is_none() { Err(TokenError::Empty(self.file.clone())) } else { Ok(()) }
    }

    /// Whether a request carries one of the tokens.
    ///
    /// # Errors
    /// The answer to one that does not, or that nobody can judge.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text = self.read().map_err(|error| {
            tracing::warn!(file = %self.file.display(), %error, "cannot read [intake] token_file; rejecting all requests");
            Problem::unavailable("The tokens cannot be read.")
        })?;
        let given = bearer(headers).ok_or_else(Problem::without_token)?;
        let given = Sha256::digest(given);
        let mut known = false;
        for (_, line) in lines(&text).filter(|(_, line)| is_token(line)) {
            let token = Sha256::digest(line);
            known |= token.iter().zip(&given).fold(0, |different, (a, b)| different | (a ^ b)) == 0;
        }
        if known { Ok(()) } else { Err(Problem::with_wrong_token()) }
    }

    fn read(&self) -> std::io::Result<SecretString> {
        crate::file::text(&self.file).map(SecretString::from)
    }
}

/// The lines that are not empty, with their numbers.
fn lines(text: &SecretString) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.expose_secret().lines().zip(1..).map(|(line, number)| (number, line.trim()));
    lines.filter(|(_, line)| !line.is_empty())
}

fn is_token(line: &str) -> bool {
    LENGTH.contains(&line.len()) && line.chars().all(|c| c.is_ascii_graphic())
}

/// The token of the one `Authorization` header; none when there are several.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (one, None) = (all.next()?, all.next()) else { return None };
    let (scheme, token) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "0123456789abcdef";
    const NEW: &str = "fedcba9876543210";

    fn tokens(text: &str) -> (tempfile::TempDir, Tokens) {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("tokens");
        std::fs::write(&file, text).expect("written");
        (dir, Tokens::new(file))
    }

    fn admits(tokens: &Tokens, authorization: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, authorization.parse().expect("a header"));
        tokens.admit(&headers).is_ok()
    }

    #[test]
    fn each_line_is_a_token_and_nothing_else_is() {
        let (_dir, tokens) = tokens(&format!("{OLD}\r\n\n  {NEW}\nshort\n"));
        for right in [format!("Bearer {OLD}"), format!("bearer {NEW}"), format!("BEARER  {OLD}")] {
            assert!(admits(&tokens, &right), "{right}");
        }
        let almost = &OLD[1..];
        for wrong in ["Bearer", "Bearer ", "Bearer short", "Basic 0123456789abcdef", OLD, &format!("Bearer {almost}")] {
            assert!(!admits(&tokens, wrong), "{wrong}");
        }
        assert!(tokens.admit(&HeaderMap::new()).is_err());
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            twice.append(header::AUTHORIZATION, format!("Bearer {OLD}").parse().expect("a header"));
        }
        assert!(tokens.admit(&twice).is_err(), "which of the two is meant?");
    }

    // Guarantee: intake.tokens
    #[test]
    fn a_changed_file_counts_at_once_also_when_its_time_and_length_have_not_changed() {
        let (_dir, tokens) = tokens(OLD);
        assert!(admits(&tokens, &format!("Bearer {OLD}")) && !admits(&tokens, &format!("Bearer {NEW}")));
        std::fs::write(&tokens.file, NEW).expect("written");
        assert!(!admits(&tokens, &format!("Bearer {OLD}")) && admits(&tokens, &format!("Bearer {NEW}")));
        std::fs::remove_file(&tokens.file).expect("removed");
        assert!(!admits(&tokens, &format!("Bearer {NEW}")));
    }

    #[test]
    fn a_file_that_lets_nobody_in_is_told_by_its_line_and_not_by_its_text() {
        for (text, told) in [("", "holds no token"), ("\n \n", "holds no token"), ("hunter2", "line 1 is no token")] {
            let (_dir, tokens) = tokens(text);
            let error = tokens.verify().expect_err(text).to_string();
            assert!(error.contains(told) && !error.contains("hunter2"), "{error}");
        }
        let (dir, tokens) = tokens(&format!("{OLD}\n{NEW}"));
        assert!(tokens.verify().is_ok());
        drop(dir);
        assert!(tokens.verify().expect_err("the file is gone").to_string().contains("cannot read"));
    }
}
