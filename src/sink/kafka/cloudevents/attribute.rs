//! What the values and names of attributes may be.
//!
//! Pure. Sources: CloudEvents 1.0.2, "Type System" and "Naming Conventions"; RFC 3986 for URIs; RFC 2045 for media types.

/// A type of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeType {
    /// `String`.
    Text,
    /// `URI-reference`.
    UriReference,
    /// `URI`: absolute.
    Uri,
}

/// What is wrong with a value; says nothing of the value itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Faulty {
    /// It has no character.
    #[error("is empty")]
    Empty,
    /// It has a character that no attribute may have.
    #[error("has a control character, or one that is no character in Unicode")]
    Character,
    /// It is no URI reference.
    #[error("is no URI reference by RFC 3986")]
    UriReference,
    /// It is no absolute URI.
    #[error("is no absolute URI by RFC 3986")]
    Uri,
}

impl AttributeType {
    /// Whether a value is of this type.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self, text: &str) -> Result<(), Faulty> {
        if text.is_empty() {
            return Err(Faulty::Empty);
        }
        match self {
            Self::Text if text.chars().any(is_disallowed) => Err(Faulty::Character),
            Self::UriReference if !is_uri_reference(text) => Err(Faulty::UriReference),
            Self::Uri if !is_uri_reference(text) || scheme(text).is_none() || text.contains('#') => Err(Faulty::Uri),
            Self::Text | Self::UriReference | Self::Uri => Ok(()),
        }
    }
}

fn is_disallowed(c: char) -> bool {
    let code = u32::from(c);
    c.is_control() || (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// The scheme, if the text begins with one.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(scheme)
}

fn is_uri_reference(text: &str) -> bool {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let path = match scheme(path) {
        Some(scheme) => &path[scheme.len() + 1..],
        // The first segment of a relative path has no colon: what stands before it would be taken for a scheme.
        None if path.split('/').next().unwrap_or_default().contains(':') => return false,
        None => path,
    };
    let (authority, path) = match path.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", path),
    };
    is_authority(authority) && is_of(path, "/:@") && is_of(query, "/?:@") && is_of(fragment, "/?:@")
}

fn is_authority(authority: &str) -> bool {
    let (user, server) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            ("", port)
        }
        None => server.split_at(server.find(':').unwrap_or(server.len())),
    };
    let is_port =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    is_of(user, ":") && is_of(host, "") && is_port
}

/// Whether a text has only unreserved characters, sub-delimiters, percent-encoded bytes, and those of `more`.
fn is_of(text: &str, more: &str) -> bool {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '%' {
            let digits = rest.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(digits) = digits else { return false };
            rest = &rest[digits.len()..];
        } else if !(c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c) || more.contains(c)) {
            return false;
        }
    }
    true
}

/// Attributes of the specification, and the member for the data.
const TAKEN: [&str; 9] =
    ["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data"];

/// Whether an attribute of one's own may have this name.
#[must_use]
pub fn is_extension_name(name: &str) -> bool {
    (1..=20).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && !TAKEN.contains(&name)
}

/// Whether a text is a media type, with or without parameters, that does not say that the event itself is in the value.
#[must_use]
pub fn is_media_type(text: &str) -> bool {
    let (media, parameters) = text.split_once(';').unwrap_or((text, "a=b"));
    let token = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let parameter =
        |text: &str| text.split_once('=').is_some_and(|(name, value)| token(name.trim()) && !value.is_empty());
    let of_events = media.to_ascii_lowercase().starts_with("application/cloudevents");
    let is_media = media.trim_end().split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    is_media && !of_events && AttributeType::Text.check(text).is_ok() && parameters.split(';').all(parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_those_of_the_rfc() {
        for good in [
            "https://github.com/cloudevents",
            "mailto:cncf-wg-serverless@lists.cncf.io",
            "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
            "/cloudevents/spec/pull/123",
            "/sensors/tn-1234567/alerts",
            "1-555-123-4567",
            "//user@host:80/a?b=c/d?#e",
            "http://[::1]:8080/",
            "a/b:c",
            "?q",
            "%C3%A4",
        ] {
            assert_eq!(AttributeType::UriReference.check(good), Ok(()), "{good}");
        }
        for bad in [
            "a b",
            "ä",
            "1:2",
            "%",
            "%g0",
            "a#b#c",
            "a[1]",
            "//a:b/",
            "<a>",
            "a\"b",
            "//[1]/",
            "a\\b",
            "a^b",
            "%aä",
            "//[:]/",
            "//[1:2:3]/",
        ] {
            assert_eq!(AttributeType::UriReference.check(bad), Err(Faulty::UriReference), "{bad}");
        }
        assert_eq!(AttributeType::UriReference.check(""), Err(Faulty::Empty));
        assert_eq!(AttributeType::Uri.check("https://example.org/schema.json?v=1"), Ok(()));
        for bad in ["/schema.json", "https://example.org/a b", "https://example.org/#1"] {
            assert_eq!(AttributeType::Uri.check(bad), Err(Faulty::Uri), "{bad}");
        }
    }

    #[test]
    fn texts_have_no_character_that_the_specification_bans() {
        for good in ["a", "com.example.ä€😀", "a b \"c\""] {
            assert_eq!(AttributeType::Text.check(good), Ok(()), "{good}");
        }
        for bad in ["a\nb", "\u{0}", "\u{1f}", "\u{7f}", "\u{9f}", "\u{fdd0}", "\u{fffe}", "\u{1ffff}", "\u{10ffff}"] {
            assert_eq!(AttributeType::Text.check(bad), Err(Faulty::Character), "{bad:?}");
        }
    }

    #[test]
    fn names_and_media_types() {
        for good in ["tenant", "partitionkey", "a1"] {
            assert!(is_extension_name(good), "{good}");
        }
        for bad in ["", "Tenant", "tenant_id", "data", "type", "time", "abcdefghijklmnopqrstu"] {
            assert!(!is_extension_name(bad), "{bad}");
        }
        for good in
            ["application/json", "text/plain; charset=utf-8", "application/vnd.a+json", "application/x;a=\"b c\""]
        {
            assert!(is_media_type(good), "{good}");
        }
        for bad in [
            "",
            "json",
            "a/",
            "/b",
            "a/b c",
            "application/cloudevents+json",
            "Application/CloudEvents",
            "a/b;",
            "a/b\n",
        ] {
            assert!(!is_media_type(bad), "{bad:?}");
        }
    }
}
