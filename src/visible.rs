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
    fn what_is_bounded_ends_between_two_characters() {
        assert_eq!(bounded("aäb", 2), "a");
        assert_eq!(bounded("a\0b\nc", 9), "a b\nc");
    }
}
