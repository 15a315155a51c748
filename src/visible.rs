//! Texts of others, made safe to show beside ours.

/// A text with its control characters shown as escapes: they could play tricks on a terminal, or pass for a
/// line of ours.
#[must_use]
pub fn visible(text: &str) -> String {
    if text.chars().any(plays_tricks) {
        text.chars().map(|c| if plays_tricks(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
    } else {
        text.to_owned()
    }
}

/// Control characters, and those that turn the direction of writing round: what stands there would not be what is read.
fn plays_tricks(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The words of a stranger as [`visible`] shows them: at most so many bytes of that, and no escape in part.
#[must_use]
pub fn words(of: &str, bytes: usize) -> String {
    fitting(of, bytes, str::len)
}

/// The same of at most so many characters.
#[must_use]
pub fn line(of: &str, characters: usize) -> String {
    fitting(of, characters, |text| text.chars().count())
}

fn fitting(of: &str, most: usize, size: impl Fn(&str) -> usize) -> String {
    let (mut shown, mut rest) = (String::new(), most);
    for c in of.chars() {
        let next = if plays_tricks(c) { c.escape_unicode().to_string() } else { c.to_string() };
        let Some(left) = rest.checked_sub(size(&next)) else { break };
        rest = left;
        shown.push_str(&next);
    }
    shown
}

/// At most so many bytes of a text; control characters but line ends and tabs, which PostgreSQL or a terminal may not take, are blanks.
#[must_use]
pub fn bounded(text: &str, bytes: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c }).collect();
    let end = (0..=bytes.min(plain.len())).rev().find(|at| plain.is_char_boundary(*at)).unwrap_or(0);
    plain[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_play_tricks_is_shown_as_an_escape_and_nothing_else_changes() {
        assert_eq!(visible("\"a\\b ü\t日本"), "\"a\\b ü\\u{9}日本");
        assert_eq!(visible("\n\u{1b}\u{9b}\u{202e}"), "\\u{a}\\u{1b}\\u{9b}\\u{202e}");
    }

    #[test]
    fn words_of_a_stranger_end_before_what_does_not_fit_as_a_whole() {
        assert_eq!(words("a\u{1b}b", 99), "a\\u{1b}b");
        assert_eq!((words("a\u{1b}b", 7).as_str(), words("a\u{1b}b", 6).as_str()), ("a\\u{1b}", "a"));
        assert_eq!((line("ä\u{1b}b", 7).as_str(), line("ä\u{1b}b", 6).as_str()), ("ä\\u{1b}", "ä"));
        assert_eq!((words("aä", 2).as_str(), words("\u{202e}", 3).as_str()), ("a", ""));
    }

    #[test]
    fn what_is_bounded_ends_between_two_characters() {
        assert_eq!(bounded("aäb", 2), "a");
        assert_eq!(bounded("a\0b\nc", 9), "a b\nc");
    }
}
