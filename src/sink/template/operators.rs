//! Makes each operator that can make something large a filter, which is asked how much it would make.
//!
//! Pure. The library multiplies texts and lists up to 100 MB or 2 GB, and what joins a text with itself again and again has no limit.
//! A tag that cannot be read is left as it is: the library says what is wrong.

use super::marks::tokens;

/// The operators that are filters, with the filters' names.
pub(super) const FILTERS: [(&str, &str); 3] = [("*", "outbox_times"), ("~", "outbox_joined"), ("+", "outbox_plus")];

/// Operators that bind from left to right, by how tightly.
const LEVELS: [&[&str]; 3] = [&["+", "-"], &["~"], &["*", "/", "//", "%"]];

/// What an operand stands between. The words that begin a tag are not among them: columns may be called so.
const WORDS: [&str; 6] = ["and", "or", "not", "in", "if", "else"];

/// The inside of a tag or of brackets, with its operators as filters.
pub(super) fn filtered(text: &str) -> String {
    if text.contains(['*', '~', '+']) {
        Reading::default().read(text).unwrap_or_else(|| text.to_owned())
    } else {
        text.to_owned()
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    out: String,
    /// For each level what stands before its operator.
    chains: [(String, Option<&'static str>); 3],
    operand: String,
    /// Behind `is`, whose test may be called `in`, and whose `not` is its own.
    in_test: bool,
}

impl Reading {
    /// `None` when brackets do not match.
    fn read(mut self, text: &str) -> Option<String> {
        let (mut at, mut last) = (0, "");
        let mut rest = tokens(text, 0).filter(|(_, token)| !token.trim().is_empty()).peekable();
        while let Some((begin, token)) = rest.next() {
            let gap = &text[at..begin];
            self.operand.push_str(gap);
            at = begin + token.len();
            let doubled = gap_free(rest.peek(), at, token);
            match token {
                "(" | "[" | "{" => {
                    let end = begin + closing(&text[begin..])?;
                    self.operand.push_str(token);
                    self.operand.push_str(&filtered(&text[at..end]));
                    self.operand.push_str(&text[end..=end]);
                    at = end + 1;
                    while rest.next_if(|(begin, _)| *begin < at).is_some() {}
                }
                ")" | "]" | "}" => return None,
                "*" if self.operand.trim().is_empty() => self.delimit(token),
                "*" if doubled => {
                    rest.next();
                    at += 1;
                    self.operand.push_str("**");
                }
                "/" if doubled => {
                    rest.next();
                    at += 1;
                    self.operate(2, "//");
                }
                "-" | "+" if gap.is_empty() && is_exponent(last) => self.operand.push_str(token),
                "-" if self.operand.trim_matches(|c: char| c == '-' || c.is_whitespace()).is_empty() || last == "*" => {
                    self.operand.push('-');
                }
                "," | "=" | "<" | ">" | "!" | ":" => self.delimit(token),
                word if self.delimits(word, last) => self.delimit(word),
                _ => match operator(token) {
                    Some((level, operator)) => self.operate(level, operator),
                    None => self.operand.push_str(token),
                },
            }
            last = token;
        }
        self.operand.push_str(&text[at..]);
        self.delimit("");
        Some(self.out)
    }

    /// Whether a word ends an operand. The names of members, filters and tests are no such words.
    fn delimits(&mut self, word: &str, last: &str) -> bool {
        if self.in_test {
            self.in_test = word == "not";
            return false;
        }
        self.in_test = word == "is" && !matches!(last, "." | "|");
        WORDS.contains(&word) && !matches!(last, "." | "|")
    }

    fn operate(&mut self, level: usize, operator: &'static str) {
        let chain = self.fold(level);
        self.chains[level] = (chain, Some(operator));
    }

    /// What has been read since the last operator that binds less tightly than this level.
    fn fold(&mut self, level: usize) -> String {
        let mut operand = std::mem::take(&mut self.operand);
        for (chain, operator) in self.chains[level..].iter_mut().rev() {
            let Some(operator) = operator.take() else { continue };
            let chain = std::mem::take(chain);
            operand = match FILTERS.iter().find(|(filtered, _)| *filtered == operator) {
                Some((_, filter)) => format!("({chain})|{filter}({operand})"),
                None => format!("{chain}{operator}{operand}"),
            };
        }
        operand
    }

    fn delimit(&mut self, token: &str) {
        let folded = self.fold(0);
        self.out.push_str(&folded);
        self.out.push_str(token);
        self.in_test = false;
    }
}

/// The operator that a token is, and its level.
fn operator(token: &str) -> Option<(usize, &'static str)> {
    LEVELS.iter().enumerate().find_map(|(level, all)| {
        let operator = all.iter().find(|operator| **operator == token)?;
        Some((level, *operator))
    })
}

/// Whether the next token is the same, with nothing between.
fn gap_free(next: Option<&(usize, &str)>, at: usize, token: &str) -> bool {
    next.is_some_and(|(begin, next)| *begin == at && *next == token)
}

/// The first half of a number like `1e-5`.
fn is_exponent(word: &str) -> bool {
    let has_radix = ["0x", "0X", "0b", "0B", "0o", "0O"].iter().any(|radix| word.starts_with(radix));
    word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(['e', 'E']) && !has_radix
}

/// Where the bracket that the text begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    for (at, token) in tokens(text, 0) {
        match token {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" => {
                if open.pop() != Some(token) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_become_filters() {
        for (source, expected) in [
            (" a*b ", "( a)|outbox_times(b )"),
            ("a * b * c", "((a )|outbox_times( b ))|outbox_times( c)"),
            ("a / b * -c + d", "((a / b )|outbox_times( -c ))|outbox_plus( d)"),
            (
                "a ~ b * c ~ d - e + f",
                "(((a )|outbox_joined(( b )|outbox_times( c )))|outbox_joined( d )- e )|outbox_plus( f)",
            ),
            ("1e+5 * 0x1e-5", "(1e+5 )|outbox_times( 0x1e)-5"),
            ("block ~ a * set", "(block )|outbox_joined(( a )|outbox_times( set))"),
            ("a ** -b * 1e-5", "(a ** -b )|outbox_times( 1e-5)"),
            ("f(*a, **b) * 'x * y'", "(f(*a, **b) )|outbox_times( 'x * y')"),
            ("not a is not in [b * 2] * 2", "not( a is not in [(b )|outbox_times( 2)] )|outbox_times( 2)"),
            ("x.in * y|as * 2", "((x.in )|outbox_times( y|as ))|outbox_times( 2)"),
            ("set x = 2 * 3", "set x =( 2 )|outbox_times( 3)"),
            ("a if b * 2 else c", "a if( b )|outbox_times( 2 )else c"),
        ] {
            assert_eq!(filtered(source), expected);
        }
    }

    #[test]
    fn everything_else_is_left_as_it_is() {
        for source in
            ["", "a - b", "f(*a)", "f(**a)", "a ** b", "'a * b'", "a * (b", "a * b)", "a ~ (b]", "ä['*']", "*"]
        {
            assert_eq!(filtered(source), source);
        }
    }
}
