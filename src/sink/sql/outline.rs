//! What can be seen of a statement's text without a server: its first word, its parameters, whether it is one.
//!
//! Pure. PostgreSQL alone decides what a statement is; this tells its author early, and by the configuration's own names,
//! what the server would say late.

use std::collections::BTreeSet;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// In capitals; empty when the text does not begin with a word.
    pub first_word: String,
    /// The numbers of `$1`, `$2` and so on.
    pub parameters: BTreeSet<usize>,
    /// Something stands behind a semicolon.
    pub several: bool,
}

impl Outline {
    /// Reads a statement's text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut outline = Self::default();
        let (mut rest, mut begun, mut ended) = (text, false, false);
        while let Some(first) = rest.chars().next() {
            let (length, silent) = token(rest, first);
            let token = &rest[..length];
            rest = &rest[length..];
            if silent {
                continue;
            }
            if !begun && first != '(' {
                begun = true;
                let word = token.chars().all(|c| c.is_ascii_alphabetic());
                outline.first_word = if word { token.to_ascii_uppercase() } else { String::new() };
            }
            outline.several |= ended && first != ';';
            ended |= first == ';';
            outline.parameters.extend(token.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()));
        }
        outline
    }
}

/// The length of the token at the beginning of a text, and whether it is only space or a comment.
fn token(text: &str, first: char) -> (usize, bool) {
    let escaped = matches!(first, 'e' | 'E') && text[1..].starts_with('\'');
    match first {
        _ if first.is_whitespace() => (first.len_utf8(), true),
        '-' if text.starts_with("--") => (text.find('\n').unwrap_or(text.len()), true),
        '/' if text.starts_with("/*") => (comment(text), true),
        '\'' | '"' => (quoted(text, first, false), false),
        _ if escaped => (1 + quoted(&text[1..], '\'', true), false),
        '$' => (dollar(text), false),
        _ if first.is_ascii_digit() => (run(text, |c| c.is_ascii_digit()), false),
        _ if is_word(first) => (run(text, |c| is_word(c) || c.is_ascii_digit() || c == '$'), false),
        _ => (first.len_utf8(), false),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// Comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(found) = text[at..].find(['/', '*']) {
        let here = &text[at + found..];
        at += found + 1;
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 1);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 1);
            if depth == 0 {
                return at;
            }
        }
    }
    text.len()
}

/// A doubled quotation mark stands for itself; it is read as the end and a new beginning, which comes to the same.
fn quoted(text: &str, mark: char, backslashes: bool) -> usize {
    let mut escape = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escape => escape = false,
            '\\' if backslashes => escape = true,
            _ if c == mark => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A parameter, or text between two equal tags.
fn dollar(text: &str) -> usize {
    let digits = run(&text[1..], |c| c.is_ascii_digit());
    if digits > 0 {
        return 1 + digits;
    }
    let Some(end) = text[1..].find('$') else { return 1 };
    let tag = &text[..end + 2];
    if !tag[1..=end].chars().all(|c| is_word(c) || c.is_ascii_digit()) {
        return 1;
    }
    text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> (String, Vec<usize>, bool) {
        let outline = Outline::of(text);
        (outline.first_word, outline.parameters.into_iter().collect(), outline.several)
    }

    #[test]
    fn parameters_are_counted_outside_of_strings_comments_and_names() {
        for (text, first, parameters, several) in [
            ("", "", &[][..], false),
            ("insert into a.b values ($1, $2::date, $1);  -- $3\n", "INSERT", &[1, 2], false),
            ("/* $3 /* $4 */ $5 */ ((Select $2))", "SELECT", &[2], false),
            ("SELECT '$1', '''$2', \"$3\", E'\\'$4', $10", "SELECT", &[10], false),
            ("SELECT $$ $1; $$, $a$ $2 $$ $a$, a$3, 1-$4", "SELECT", &[4], false),
            ("SELECT $é$ $1 $é$ + $2 -- ; DROP", "SELECT", &[2], false),
            ("SELECT 1; SELECT 2", "SELECT", &[], true),
            ("SELECT ';' ;;/* ; */ ", "SELECT", &[], false),
            ("$1 SELECT", "", &[1], false),
            ("SELECT e, E''||$1, 'ü", "SELECT", &[1], false),
            ("SELECT $ $1 $x$ unclosed $2", "SELECT", &[1], false),
        ] {
            assert_eq!(seen(text), (first.to_owned(), parameters.to_vec(), several), "{text}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let signs = ["$", "$1", "'", "\"", "E'", "\\", "--", "\n", "/*", "*/", "ä", "$é$", ";", "(", "a"];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let text: String = (0..random.usize(0..12)).map(|_| signs[random.usize(0..signs.len())]).collect();
            let _ = Outline::of(&text);
        }
    }
}
