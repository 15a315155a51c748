//! String literals of Rust code.

use std::ops::Range;

/// Where the string literals of Rust code are, each with its quotes.
pub(crate) fn literals(code: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let (length, text) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            (rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len()), true)
        } else if first == '"' {
            (string_end(rest), true)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\'") {
            (3, false)
        } else {
            (first.len_utf8(), false)
        };
        if text {
            found.push(at..at + length);
        }
        at += length;
    }
    found
}

/// The string literals of Rust code, each in its place: what is between them is blank.
#[allow(dead_code, reason = "tests/architecture.rs looks at each by itself")]
pub(crate) fn only_literals(code: &str) -> String {
    let blank = |text: &str| text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect::<String>();
    let (mut out, mut end) = (String::with_capacity(code.len()), 0);
    for literal in literals(code) {
        out.push_str(&blank(&code[end..literal.start]));
        out.push_str(&code[literal.clone()]);
        end = literal.end;
    }
    out + &blank(&code[end..])
}

/// With how many `#` a raw string begins here.
fn raw_string(code: &str) -> Option<usize> {
    let after = code.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn string_end(code: &str) -> usize {
    let mut escaped = false;
    for (at, found) in code.char_indices().skip(1) {
        match found {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    code.len()
}
