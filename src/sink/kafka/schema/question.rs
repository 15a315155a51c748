//! What a registry is asked: the API of Confluent's, which others offer, too.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::SchemaKind;

/// All but the unreserved characters of RFC 3986: a subject is one part of a path.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Which schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) subject: String,
    pub(super) which: Which,
}

/// Of a subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Which {
    Latest,
    Version(u32),
    /// The one of this text, which must be registered.
    Same(SchemaKind, Arc<str>),
    /// The same; it is registered where it is not.
    Register(SchemaKind, Arc<str>),
}

impl Question {
    /// Whether its answer may be another one later.
    pub(super) const fn may_change(&self) -> bool {
        matches!(self.which, Which::Latest)
    }

    /// Its own text, where it has one: registries answer with the id alone, or with a text that they have written in their own way.
    pub(super) fn text(&self) -> Option<(SchemaKind, &Arc<str>)> {
        match &self.which {
            Which::Same(kind, text) | Which::Register(kind, text) => Some((*kind, text)),
            Which::Latest | Which::Version(_) => None,
        }
    }

    /// Below the registry's address.
    pub(super) fn path(&self) -> String {
        let subject = utf8_percent_encode(&self.subject, PART);
        match &self.which {
            Which::Latest => format!("/subjects/{subject}/versions/latest"),
            Which::Version(version) => format!("/subjects/{subject}/versions/{version}"),
            Which::Same(..) => format!("/subjects/{subject}"),
            Which::Register(..) => format!("/subjects/{subject}/versions"),
        }
    }

    /// Where it is asked whether the subject would take the text.
    pub(super) fn compatibility_path(&self) -> String {
        let subject = utf8_percent_encode(&self.subject, PART);
        format!("/compatibility/subjects/{subject}/versions/latest?verbose=true")
    }

    /// What is sent; none where nothing is.
    pub(super) fn body(&self) -> Option<String> {
        let (kind, text) = self.text()?;
        let body = match kind {
            // As registries had it before they knew others.
            SchemaKind::Avro => serde_json::json!({ "schema": &**text }),
            SchemaKind::Protobuf | SchemaKind::JsonSchema => {
                serde_json::json!({ "schema": &**text, "schemaType": kind.in_registry() })
            }
        };
        Some(body.to_string())
    }
}

/// A schema in a registry's answer.
#[derive(Debug, Deserialize)]
pub(super) struct Registered {
    pub(super) id: u32,
    pub(super) version: Option<u32>,
    pub(super) schema: Option<String>,
    /// None: Avro.
    #[serde(rename = "schemaType")]
    pub(super) kind: Option<String>,
    pub(super) references: Option<Vec<Reference>>,
}

/// Another schema that one refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Reference {
    pub(super) name: String,
    pub(super) subject: String,
    pub(super) version: u32,
}

/// Why a registry has refused.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Refusal {
    #[serde(default)]
    pub(super) error_code: i64,
    #[serde(default)]
    pub(super) message: String,
}

impl Refusal {
    /// Of a subject, a version or a schema, and not of a path that the server does not have.
    pub(super) const fn is_missing(&self) -> bool {
        matches!(self.error_code, 40_401..=40_403)
    }
}

/// Whether a subject would take a schema.
#[derive(Debug, Deserialize)]
pub(super) struct Compatibility {
    pub(super) is_compatible: bool,
    #[serde(default)]
    pub(super) messages: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_bodies_are_those_of_the_api() {
        let of = |which| Question { subject: "a/b ü-value".to_owned(), which };
        assert_eq!(of(Which::Latest).path(), "/subjects/a%2Fb%20%C3%BC-value/versions/latest");
        assert_eq!(of(Which::Version(7)).path(), "/subjects/a%2Fb%20%C3%BC-value/versions/7");
        let text = Arc::<str>::from("\"string\"");
        let same = of(Which::Same(SchemaKind::Avro, Arc::clone(&text)));
        assert_eq!(same.path(), "/subjects/a%2Fb%20%C3%BC-value");
        assert_eq!(same.body().as_deref(), Some(r#"{"schema":"\"string\""}"#));
        let register = of(Which::Register(SchemaKind::JsonSchema, text));
        assert_eq!(register.path(), "/subjects/a%2Fb%20%C3%BC-value/versions");
        assert_eq!(register.body().as_deref(), Some(r#"{"schema":"\"string\"","schemaType":"JSON"}"#));
        assert!(of(Which::Latest).may_change() && !register.may_change());
        assert_eq!(of(Which::Latest).body(), None);
    }
}
