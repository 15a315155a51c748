//! One mailbox, and what may stand in a line of a mail's header.
//!
//! Stricter than RFC 5322 on purpose: no comments, groups, quoted local parts, address literals or second addresses,
//! because each of them has been used to put a receiver of one's own behind a name that looks like one value. What does
//! not fit is refused as it is; nothing is stripped.

use std::fmt;

/// The longest local part and domain of RFC 5321.
const LONGEST_LOCAL: usize = 64;
const LONGEST_DOMAIN: usize = 255;
const LONGEST_LABEL: usize = 63;

/// A name, perhaps, and an address in ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    local: String,
    domain: String,
}

/// Why a text is no mailbox. Says nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMailbox {
    /// A character that plays tricks in a header.
    #[error("it has a control character, a line break, an encoded word or a mark that turns the direction of writing")]
    Character,
    /// A name that would need quoting.
    #[error("its name has one of the characters ( ) < > [ ] : ; @ \\ , \"")]
    Name,
    /// Not `local@domain`.
    #[error("it is not exactly one address of the form local@domain")]
    Address,
    /// A local part that is none of those that every server takes.
    #[error("the part before @ is not 1 to 64 ASCII letters, digits and marks, with single dots between them")]
    Local,
    /// A domain that is none.
    #[error("the part behind @ is not the name of a domain")]
    Domain,
}

/// Whether a text may stand in a header's line: no control characters, no separators of lines, no marks that make what
/// stands there look like something else, and nothing that a reader would decode into one of them. Marks that
/// right-to-left scripts need are allowed.
pub(super) fn is_one_line(text: &str) -> bool {
    let plays_tricks = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_encoded = text.split_once("=?").is_some_and(|(_, rest)| rest.contains("?="));
    !is_encoded && !text.chars().any(plays_tricks)
}

impl Mailbox {
    /// Reads `local@domain` or `Name <local@domain>`.
    ///
    /// # Errors
    /// When the text is anything else.
    pub fn parse(text: &str) -> Result<Self, NoMailbox> {
        if !is_one_line(text) {
            return Err(NoMailbox::Character);
        }
        let (name, address) = match text.strip_suffix('>') {
            Some(rest) => {
                rest.split_once('<').map(|(name, address)| (name.trim(), address)).ok_or(NoMailbox::Address)?
            }
            None => ("", text.trim_matches(' ')),
        };
        if name.contains(['(', ')', '<', '>', '[', ']', ':', ';', '@', '\\', ',', '"']) {
            return Err(NoMailbox::Name);
        }
        let (local, domain) = address.split_once('@').ok_or(NoMailbox::Address)?;
        if domain.contains('@') {
            return Err(NoMailbox::Address);
        }
        if !is_local(local) {
            return Err(NoMailbox::Local);
        }
        let domain = ascii_domain(domain).ok_or(NoMailbox::Domain)?;
        let name = (!name.is_empty()).then(|| name.to_owned());
        Ok(Self { name, local: local.to_owned(), domain })
    }

    /// `local@domain`, in ASCII.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}@{}", self.local, self.domain)
    }

    /// The part behind `@`.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// For the library that writes headers; none when it thinks less of the address than we do.
    pub(super) fn to_header(&self) -> Option<lettre::message::Mailbox> {
        let address = lettre::Address::new(&self.local, &self.domain).ok()?;
        Some(lettre::message::Mailbox::new(self.name.clone(), address))
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}>", self.address()),
            None => f.write_str(&self.address()),
        }
    }
}

/// RFC 5322's dot-atom.
fn is_local(local: &str) -> bool {
    let is_atom = |atom: &str| {
        !atom.is_empty() && atom.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c))
    };
    local.len() <= LONGEST_LOCAL && local.split('.').all(is_atom)
}

/// The domain as it stands in the DNS; none when it is no domain.
#[must_use]
pub fn ascii_domain(domain: &str) -> Option<String> {
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let ascii = if domain.is_ascii() { domain.to_owned() } else { idna::domain_to_ascii(domain).ok()? };
    (ascii.len() <= LONGEST_DOMAIN && ascii.split('.').all(is_label)).then_some(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mailbox_with_a_name_or_without_is_read() {
        for (text, address, shown) in [
            ("ann@example.com", "ann@example.com", "ann@example.com"),
            (" ann@example.com ", "ann@example.com", "ann@example.com"),
            ("Ann <a.n+n@example.com>", "a.n+n@example.com", "Ann <a.n+n@example.com>"),
            ("<ann@localhost>", "ann@localhost", "ann@localhost"),
            ("Dr. Ärztin O'Neil <o'neil@b\u{fc}cher.example>", "o'neil@xn--bcher-kva.example", ""),
            ("\u{5d0}\u{200f} <a@b.example>", "a@b.example", "\u{5d0}\u{200f} <a@b.example>"),
        ] {
            let mailbox = Mailbox::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            assert_eq!(mailbox.address(), address);
            assert!(shown.is_empty() || mailbox.to_string() == shown, "{mailbox}");
            assert!(mailbox.to_header().is_some(), "{text:?}");
        }
    }

    #[test]
    fn whatever_could_be_more_than_one_address_is_refused() {
        use NoMailbox::{Address, Character, Domain, Local, Name};
        for (text, reason) in [
            ("", Address),
            ("ann", Address),
            ("a@b.example, c@d.example", Address),
            ("a@b.example,c", Domain),
            ("a@b.example;c", Domain),
            ("Ann, Bob <a@b.example>", Name),
            ("Ann <c@d.example> <a@b.example>", Address),
            ("c@d.example <a@b.example>", Name),
            ("group: a@b.example;", Local),
            ("(comment) <a@b.example>", Name),
            ("\"Ann\" <a@b.example>", Name),
            ("Ann <a@b.example", Local),
            ("Ann a@b.example>", Address),
            ("a@b.example\r\nBcc: c@d.example", Character),
            ("a@b.example\nx", Character),
            ("a\0@b.example", Character),
            ("a@b.example\u{85}", Character),
            ("\u{202e}nnA <a@b.example>", Character),
            ("=?utf-8?q?x=0D=0ABcc:_e=40b?= <a@b.example>", Character),
            ("Ann\u{2028} <a@b.example>", Character),
            ("\"a b\"@b.example", Local),
            ("a b@b.example", Local),
            ("a..b@b.example", Local),
            (".a@b.example", Local),
            ("\u{e4}@b.example", Local),
            ("a> RCPT TO:<c@b.example", Local),
            ("a@[127.0.0.1]", Domain),
            ("a@b..example", Domain),
            ("a@-b.example", Domain),
            ("a@b.example> SIZE=1", Domain),
            ("a@b\u{3002}\u{2488}example,", Domain),
            ("@b.example", Local),
            ("a@", Domain),
            ("<@c.example:a@b.example>", Address),
            ("a%b@c@d", Address),
        ] {
            assert_eq!(Mailbox::parse(text), Err(reason), "{text:?}");
        }
        assert_eq!(Mailbox::parse(&format!("{}@b.example", "a".repeat(65))), Err(Local));
        assert_eq!(Mailbox::parse(&format!("a@{}.example", "b".repeat(64))), Err(Domain));
    }
}
