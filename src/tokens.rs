//! Who may ask a listener: tokens from a file, one a line, so that two are valid while they are rotated.
//!
//! The file is read at each request: a changed one counts at once, and nothing of it stays in memory. Tokens are compared
//! by their digests, all of them each time, so that the time of an answer tells nothing.

use std::path::PathBuf;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

/// Shorter ones could be guessed, longer ones pass no header limit.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=1024;

/// The file of tokens that `token_file` of a section of the configuration names.
#[derive(Clone, Debug)]
pub struct Tokens {
    section: &'static str,
    file: PathBuf,
}

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The file cannot be read: no request can be judged.
    Unreadable,
    /// The request has no token, or several.
    Missing,
    /// Its token is none of the file.
    Wrong,
}

/// There is no token that could be accepted, or one that never will be.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read [{section}] token_file {file}: {source}")]
    Unreadable {
        /// Whose it is.
        section: &'static str,
        /// Which file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It has no token.
    #[error("[{section}] token_file {file} holds no token: write one a line, for example from `openssl rand -hex 32`")]
    Empty {
        /// Whose it is.
        section: &'static str,
        /// Which file.
        file: PathBuf,
    },
    /// A line of it is no token.
    #[error(
        "[{section}] token_file {file}: line {line} is no token: 16 to 1024 visible ASCII characters, for example from `openssl \
         rand -hex 32`"
    )]
    Malformed {
        /// Whose it is.
        section: &'static str,
        /// Which file.
        file: PathBuf,
        /// Which line, counted from 1.
        line: usize,
    },
}

impl Tokens {
    /// Of this file, which `token_file` of this section names.
    #[must_use]
    pub const fn new(section: &'static str, file: PathBuf) -> Self {
        Self { section, file }
    }

    /// Whether there is at least one token, and every line is one.
    ///
    /// # Errors
    /// What is wrong, without the line's text.
    pub fn verify(&self) -> Result<(), TokenError> {
        let Self { section, file } = self.clone();
        let text = match self.read() {
            Ok(text) => text,
            Err(source) => return Err(TokenError::Unreadable { section, file, source }),
        };
        for (line, text) in lines(&text) {
            if !is_token(text) {
                return Err(TokenError::Malformed { section, file, line });
            }
        }
        if lines(&text).next().is_none() { Err(TokenError::Empty { section, file }) } else { Ok(()) }
    }

    /// Whether a request carries one of the tokens: `Authorization: Bearer TOKEN`.
    ///
    /// # Errors
    /// Why it is not admitted.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        self.judge(authorization(headers).and_then(bearer))
    }

    /// The same of a browser's request, too, which has the token as the password of any user.
    ///
    /// # Errors
    /// Why it is not admitted.
    pub(crate) fn admit_browser(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let given = authorization(headers);
        let password = given.and_then(password);
        self.judge(given.and_then(bearer).or_else(|| password.as_ref().map(|text| text.expose_secret())))
    }

    fn judge(&self, given: Option<&str>) -> Result<(), Refused> {
        let text = self.read().map_err(|error| {
            let (section, file) = (self.section, self.file.display());
            tracing::warn!(section, %file, %error, "cannot read token_file; rejecting all requests");
            Refused::Unreadable
        })?;
        let given = Sha256::digest(given.ok_or(Refused::Missing)?);
        let mut known = false;
        for (_, line) in lines(&text).filter(|(_, line)| is_token(line)) {
            let token = Sha256::digest(line);
            known |= token.iter().zip(&given).fold(0, |different, (a, b)| different | (a ^ b)) == 0;
        }
        if known { Ok(()) } else { Err(Refused::Wrong) }
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

/// Scheme and credentials of the one `Authorization` header; none when there are several.
fn authorization(headers: &HeaderMap) -> Option<(&str, &str)> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (one, None) = (all.next()?, all.next()) else { return None };
    let (scheme, credentials) = one.to_str().ok()?.split_once(' ')?;
    Some((scheme, credentials.trim()))
}

fn bearer<'a>((scheme, token): (&str, &'a str)) -> Option<&'a str> {
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// The password of HTTP Basic, of any user.
fn password((scheme, credentials): (&str, &str)) -> Option<SecretString> {
    let decoded = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(credentials).ok())??;
    let text = SecretString::from(String::from_utf8(decoded).ok()?);
    let (_, password) = text.expose_secret().split_once(':')?;
    Some(SecretString::from(password))
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
        (dir, Tokens::new("intake", file))
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

    #[test]
    fn a_browser_sends_the_token_as_the_password_of_any_user_and_others_may_not() {
        let (_dir, tokens) = tokens(OLD);
        let judged = |authorization: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, authorization.parse().expect("a header"));
            (tokens.admit_browser(&headers), tokens.admit(&headers))
        };
        let basic = |pair: String| format!("Basic {}", STANDARD.encode(pair));
        for user in ["", "admin", "a b"] {
            assert_eq!(judged(&basic(format!("{user}:{OLD}"))), (Ok(()), Err(Refused::Missing)), "{user}");
        }
        assert_eq!(judged(&format!("Bearer {OLD}")), (Ok(()), Ok(())));
        for wrong in [format!("{OLD}:"), format!("u:{OLD}x"), format!("u:x:{OLD}")] {
            assert_eq!(judged(&basic(wrong.clone())).0, Err(Refused::Wrong), "{wrong}");
        }
        for none in [basic(OLD.to_owned()), "Basic !".to_owned(), "Basic".to_owned()] {
            assert_eq!(judged(&none).0, Err(Refused::Missing), "{none}");
        }
        assert_eq!(tokens.admit_browser(&HeaderMap::new()), Err(Refused::Missing));
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
