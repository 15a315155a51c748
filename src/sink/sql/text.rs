//! Values on their way back to PostgreSQL: in its own text form, so that every type works as it is.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

/// A value's text as PostgreSQL wrote it; `None` is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text<T>(pub(super) Option<T>);

impl<T: AsRef<[u8]> + std::fmt::Debug> ToSql for Text<T> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(text) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_ref());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// The text of an array of these elements. Each stands in quotation marks: nothing in it can then be taken for NULL, for a
/// brace or for the end of an element.
pub(super) fn array<'a>(elements: impl Iterator<Item = Option<&'a [u8]>>, delimiter: char) -> Vec<u8> {
    let mut text = vec![b'{'];
    for element in elements {
        if text.len() > 1 {
            text.extend_from_slice(delimiter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        let Some(element) = element else {
            text.extend_from_slice(b"NULL");
            continue;
        };
        text.push(b'"');
        for byte in element {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.push(b'"');
    }
    text.push(b'}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_elements_keep_quotes_backslashes_braces_and_nulls_apart() {
        let elements: [Option<&str>; 9] = [
            Some("a"),
            None,
            Some("NULL"),
            Some(""),
            Some("\"q\""),
            Some("\\x00"),
            Some("{1,2}"),
            Some(" b\n"),
            Some("c,d;ü"),
        ];
        let text = array(elements.iter().map(|element| element.map(str::as_bytes)), ',');
        let expected = r#"{"a",NULL,"NULL","","\"q\"","\\x00","{1,2}"," b"#.to_owned() + "\n\",\"c,d;ü\"}";
        assert_eq!(String::from_utf8(text).expect("text"), expected);
        assert_eq!(array([Some(&b"1"[..]), Some(b"2")].into_iter(), ';'), b"{\"1\";\"2\"}");
        assert_eq!(array(std::iter::empty(), ','), b"{}");
    }
}
