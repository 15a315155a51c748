//! Text as HTML. Whatever comes from the database or the configuration goes through here, and is cut where it is too long to be read:
//! one name or one error of a megabyte must not make a page that no browser shows.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

use crate::position::Timestamp;
use crate::relay::inspect::status::in_one_unit;
use crate::visible::visible;

/// So many characters of a name, a state or a time are shown.
const NAME: usize = 200;
/// And of a sentence or a command.
const SENTENCE: usize = 2_000;

/// A name, as a text that is no markup, whatever stands in it; control characters are shown as escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Esc<'a>(pub(super) &'a str);

impl Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Whole(&cut(self.0, NAME)).fmt(f)
    }
}

/// So many characters of a text, with an ellipsis where it has more.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The same as [`Esc`], of any length.
struct Whole<'a>(&'a str);

impl Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.bytes().all(is_plain) {
            return f.write_str(self.0);
        }
        let text = visible(self.0);
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '`']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                b'\'' => "&#39;",
                _ => "&#96;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// What stands for itself in HTML and on a terminal: of a thousand cursors there is much of it.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'' | b'`')
}

/// How long ago an instant is. The instant counts as what the page shows, its age does not.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("<time datetime=\"{at}\" data-ages>{} ago</time>", in_one_unit(now.since(at)))
}

/// A sentence in which what stands between backticks is code.
pub(super) fn prose(text: &str) -> String {
    let text = &*cut(text, SENTENCE);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return Whole(text).to_string();
    }
    let mut html = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        let part = Whole(part);
        let _ = if at % 2 == 0 { write!(html, "{part}") } else { write!(html, "<code>{part}</code>") };
    }
    html
}

/// A step of an advice: a command stands alone, to be copied, and anything else is a sentence.
pub(super) fn step(text: &str) -> String {
    if is_command(text) { format!("<pre data-copy><code>{}</code></pre>", Whole(text)) } else { prose(text) }
}

/// Whether a text can be pasted as it is, whole: into a shell, where no sign in it has a meaning of its own, or into psql.
fn is_command(text: &str) -> bool {
    if text.len() > SENTENCE {
        return false;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _.:/#=,-".contains(c);
    let of_shell = text.starts_with("outbox-relay ") && !text.contains(" #") && text.chars().all(is_plain);
    let statements =
        ["SELECT pg_terminate_backend(", "SELECT pid, ", "SELECT gid, ", "ROLLBACK PREPARED '", "COMMIT PREPARED '"];
    let of_psql = statements.iter().any(|begin| text.starts_with(begin)) && text.ends_with(';');
    of_shell || (of_psql && visible(text) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup_or_an_attribute() {
        let hostile = "<script>alert(1)</script>\" onload='x' & `\u{1b}[31m\u{202e}";
        let html = Esc(hostile).to_string();
        assert_eq!(
            html,
            "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&#39;x&#39; &amp; &#96;\\u{1b}[31m\\u{202e}"
        );
        assert!(!prose(hostile).contains("<script"));
        assert_eq!(Esc("plain ü 日本").to_string(), "plain ü 日本");
    }

    #[test]
    fn long_text_ends_with_an_ellipsis_between_two_characters() {
        let long = "ü".repeat(1 << 20);
        assert_eq!(Esc(&long).to_string(), format!("{}…", "ü".repeat(NAME)));
        assert_eq!(prose(&long), format!("{}…", "ü".repeat(SENTENCE)));
        assert_eq!(prose(&"ü".repeat(SENTENCE)), "ü".repeat(SENTENCE), "as long as it may be");
        let command = format!("outbox-relay cursor resume {}", "x".repeat(1 << 20));
        assert!(!step(&command).contains("data-copy") && step(&command).ends_with('…'), "half a command is none");
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_a_single_one_is_a_sign() {
        assert_eq!(prose("run `a <b>` now"), "run <code>a &lt;b&gt;</code> now");
        assert_eq!(prose("a ` b"), "a &#96; b");
    }

    #[test]
    fn only_what_a_shell_or_psql_takes_as_it_stands_is_offered_for_copying() {
        for command in [
            "outbox-relay cursor resume booking_sms#3",
            "SELECT pg_terminate_backend(17);",
            "ROLLBACK PREPARED 'a''b';",
            "outbox-relay cursor seek a --at 2026-11-21T08:00:00.5Z",
        ] {
            assert!(step(command).starts_with("<pre data-copy>"), "{command}");
        }
        for prose in [
            "Let its owner end it:",
            "outbox-relay cursor resume x; rm -rf /",
            "outbox-relay cursor resume $(reboot)",
            "outbox-relay cursor resume x #y",
            "outbox-relay cursor resume a\nb",
            "DROP TABLE a;",
            "ROLLBACK PREPARED 'a\nb';",
        ] {
            assert!(!step(prose).contains("data-copy"), "{prose}");
        }
    }
}
