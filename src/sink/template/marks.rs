//! Puts marks into a template's source: one into each loop and macro, at which its CPU time is looked at, one behind each long text,
//! which a block may keep, and one for each operator that can make something large.
//!
//! Pure. The mark prints nothing and adds no line. A source that cannot be read is left as it is: the library says what is wrong.

use super::operators;

/// The filter that looks at the time and gives what it is given.
pub(super) const FILTER: &str = "outbox_goes_on";
/// The filter that counts what has been printed without it, and gives what it is given.
pub(super) const KEEPS: &str = "outbox_keeps";
/// The bytes of a text that gets no mark: what a step prints at most without being counted.
const SHORT: usize = 32;

/// The source with its marks.
pub(super) fn marked(source: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(at) = rest.find("{%").into_iter().chain(rest.find("{{")).chain(rest.find("{#")).min() {
        let (before, here) = rest.split_at(at);
        out.push_str(before);
        // The mark must not keep the tag from trimming what stands before it.
        let trims = here[2..].starts_with('-');
        push_size(&mut out, before.len(), if trims { "-" } else { "" }, "");
        let length = match &here[..2] {
            "{#" => here.find("#}").map(|end| end + 2),
            "{{" => end(here, "}}"),
            _ => end(here, "%}"),
        };
        let Some(length) = length else {
            rest = here;
            break;
        };
        let (tag, behind) = here.split_at(length);
        rest = behind;
        if tag.starts_with("{#") {
            out.push_str(tag);
        } else if tag.starts_with("{{") {
            out.push_str(&with_operators(tag));
        } else if words(tag).next().is_some_and(|(_, word)| word == "raw") {
            let raw = raw_end(behind).unwrap_or(behind.len());
            out.push_str(tag);
            out.push_str(&behind[..raw]);
            push_size(&mut out, raw, "", if behind[..raw].ends_with("-%}") { "-" } else { "" });
            rest = &behind[raw..];
        } else {
            push(&mut out, &with_operators(tag));
        }
    }
    out.push_str(rest);
    out
}

/// Appends the mark of a text of so many bytes.
fn push_size(out: &mut String, bytes: usize, before: &str, behind: &str) {
    if bytes > SHORT {
        out.push_str(&format!("{{{{{before} ''|{KEEPS}({bytes}) {behind}}}}}"));
    }
}

/// The tag with its operators as filters.
fn with_operators(tag: &str) -> String {
    let begin = 2 + usize::from(tag[2..].starts_with(['-', '+']));
    let end = tag.len() - 2;
    let end = end - usize::from(end > begin && tag[..end].ends_with(['-', '+']));
    let (begin, end) = match words(tag).next().filter(|_| tag.starts_with("{%")) {
        // The word that begins the tag, and the one that may end a loop, are no operands.
        Some((at, word)) => {
            let inside = tag[..end].trim_end();
            let loops = word == "for" && inside.ends_with("recursive");
            (at + word.len(), if loops { inside.len() - "recursive".len() } else { end })
        }
        None => (begin, end),
    };
    format!("{}{}{}", &tag[..begin], operators::filtered(&tag[begin..end]), &tag[end..])
}

/// Appends a tag, with its marks if it begins a loop or a macro.
fn push(out: &mut String, tag: &str) {
    let mut words = words(tag);
    let Some((_, first @ ("for" | "macro"))) = words.next() else { return out.push_str(tag) };
    // The condition of a loop is tried on every element before its body runs.
    let condition = words.find(|(_, word)| first == "for" && *word == "if").map(|(at, word)| at + word.len());
    match condition {
        Some(begin) => {
            let end = tag.len() - 2 - usize::from(tag.ends_with("-%}") || tag.ends_with("+%}"));
            let end =
                words.last().filter(|(at, word)| *word == "recursive" && tag[at + word.len()..end].trim().is_empty());
            let end =
                end.map_or(tag.len() - 2 - usize::from(tag.ends_with("-%}") || tag.ends_with("+%}")), |(at, _)| at);
            out.push_str(&format!("{} ({})|{FILTER} {}", &tag[..begin], &tag[begin..end], &tag[end..]));
        }
        None => out.push_str(tag),
    }
    // What the tag trims behind it, the mark trims.
    out.push_str(&format!("{{{{ ''|{FILTER} {}}}}}", if tag.ends_with("-%}") { "-" } else { "" }));
}

/// How long the tag is that these characters begin with.
fn end(text: &str, closing: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens(text, 2) {
        match token {
            "(" | "[" | "{" => depth += 1,
            _ if depth == 0 && text[at..].starts_with(closing) => return Some(at + 2),
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Where the end of a raw block stops.
fn raw_end(text: &str) -> Option<usize> {
    text.match_indices("{%").find_map(|(at, _)| {
        let length = text[at..].find("%}")? + 2;
        let word = text[at + 2..at + length - 2].trim_matches(['-', '+']).trim();
        (word == "endraw").then_some(at + length)
    })
}

/// The words of a tag that are in no brackets, with their places.
fn words(tag: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut depth = 0_usize;
    tokens(tag, 2).filter(move |(_, token)| {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

/// Words and single characters from `at` on, without what is quoted.
pub(super) fn tokens(text: &str, mut at: usize) -> impl Iterator<Item = (usize, &str)> {
    std::iter::from_fn(move || {
        loop {
            let begin = at;
            let first = text.get(at..)?.chars().next()?;
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = match first {
                '"' | '\'' => quoted(&text[at..], first),
                _ if is_word(first) => text[at..].find(|c| !is_word(c)).unwrap_or(text.len() - at),
                _ => first.len_utf8(),
            };
            at += length;
            if !matches!(first, '"' | '\'') {
                return Some((begin, &text[begin..at]));
            }
        }
    })
}

/// How long the string is that these characters begin with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "{{ ''|outbox_goes_on }}";

    #[test]
    fn loops_and_macros_get_marks() {
        for (source, marked_source) in [
            ("{% for a in b %}x{% endfor %}", format!("{{% for a in b %}}{BODY}x{{% endfor %}}")),
            ("{%- for a in b -%}  x", "{%- for a in b -%}{{ ''|outbox_goes_on -}}  x".to_owned()),
            (
                "{% for a in (b if c else d) if e or f recursive %}x",
                format!("{{% for a in (b if c else d) if ( e or f )|outbox_goes_on recursive %}}{BODY}x"),
            ),
            (
                "{% for a in b if a == '%} if' -%}x",
                "{% for a in b if ( a == '%} if' )|outbox_goes_on -%}{{ ''|outbox_goes_on -}}x".to_owned(),
            ),
            ("{% macro m(a, if_b='if') %}x", format!("{{% macro m(a, if_b='if') %}}{BODY}x")),
        ] {
            assert_eq!(marked(source), marked_source);
        }
    }

    #[test]
    fn long_texts_and_operators_get_marks() {
        let long = "ä".repeat(20);
        for (source, marked_source) in [
            (format!("{long}{{{{ a }}}}{long}"), format!("{long}{{{{ ''|outbox_keeps(40) }}}}{{{{ a }}}}{long}")),
            (format!("{long}{{%- if a %}}"), format!("{long}{{{{- ''|outbox_keeps(40) }}}}{{%- if a %}}")),
            ("{{- a * b -}}".to_owned(), "{{-( a )|outbox_times( b )-}}".to_owned()),
            ("{{ -a }}{# 2 * 3 #}".to_owned(), "{{ -a }}{# 2 * 3 #}".to_owned()),
        ] {
            assert_eq!(marked(&source), marked_source);
        }
    }

    #[test]
    fn everything_else_is_left_as_it_is() {
        for source in [
            "",
            "{ % } {",
            "{{ {'a': {'b': 1}} }}{{ \"{% for a in b %}\" }}",
            "{# {% for a in b %} #}{% if x %}y{% endif %}{% set for_a = 1 %}",
            "{% raw %}{% for a in b %}{% endraw %}",
            "{%- raw -%}{% for a in b %}{%- endraw -%}",
            "{% raw %}{% for a in b %}",
            "{% for a in b",
            "{{ 'a",
            "{{ a",
            "{#",
            "ä{{ 'ä' }}{% if 'ä' == ä %}ä{% endif %}",
        ] {
            assert_eq!(marked(source), source);
        }
    }
}
