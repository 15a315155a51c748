//! One event as a record: its headers, and its value.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Attribute, CONTENT_TYPE, EventMode, Events, STRUCTURED, poison};
use crate::position::Text;
use crate::sink::Failure;

/// How the payload stands in the JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Json,
    Text,
    Base64,
}

/// How the specification wants a payload of that media type.
pub(super) fn data(datacontenttype: &str) -> Data {
    let (media, parameters) = datacontenttype.split_once(';').unwrap_or((datacontenttype, ""));
    let media = media.trim().to_ascii_lowercase();
    let (kind, subtype) = media.split_once('/').unwrap_or((&media, ""));
    let charset = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let mut charset = charset.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.next().map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase());
    let is_utf8 = charset.is_none_or(|charset| ["utf-8", "us-ascii"].contains(&charset.as_str()));
    if subtype == "json" || subtype.ends_with("+json") {
        Data::Json
    } else if is_utf8 && (kind == "text" || subtype == "xml" || subtype.ends_with("+xml")) {
        Data::Text
    } else {
        Data::Base64
    }
}

/// The attributes of one message.
pub(in crate::sink::kafka) struct Event<'a> {
    pub(super) events: &'a Events,
    pub(super) id: Cow<'a, str>,
    pub(super) time: Option<Text>,
    pub(super) values: Vec<(&'a Attribute, Cow<'a, str>)>,
}

impl Event<'_> {
    /// Those of the mode.
    pub(in crate::sink::kafka) fn headers(&self) -> Vec<(&str, &[u8])> {
        if self.events.mode == EventMode::Structured {
            return vec![(CONTENT_TYPE, STRUCTURED.as_bytes())];
        }
        let mut headers: Vec<(&str, &[u8])> = Vec::with_capacity(4 + self.values.len());
        headers.push(("ce_specversion", b"1.0"));
        headers.push(("ce_id", self.id.as_bytes()));
        headers.extend(self.values.iter().map(|(attribute, value)| (attribute.header.as_str(), value.as_bytes())));
        headers.extend(self.time.as_ref().map(|time| ("ce_time", time.as_ref())));
        headers.push((CONTENT_TYPE, self.events.datacontenttype.as_bytes()));
        headers
    }

    /// The payload, or in structured mode the object with it.
    ///
    /// # Errors
    /// When the payload is not what its media type says.
    pub(in crate::sink::kafka) fn value<'b>(
        &self,
        payload: Option<&'b [u8]>,
    ) -> Result<Option<Cow<'b, [u8]>>, Failure> {
        if self.events.mode == EventMode::Binary {
            return Ok(payload.map(Cow::Borrowed));
        }
        let mut object = Vec::with_capacity(256 + payload.map_or(0, <[u8]>::len));
        object.extend_from_slice(b"{\"specversion\":\"1.0\"");
        member("id", &self.id, &mut object);
        for (attribute, value) in &self.values {
            member(attribute.name(), value, &mut object);
        }
        if let Some(Text::Common(time)) = &self.time {
            member("time", &String::from_utf8_lossy(time), &mut object);
        }
        member("datacontenttype", &self.events.datacontenttype, &mut object);
        if let Some(payload) = payload {
            self.data(payload, &mut object)?;
        }
        object.push(b'}');
        Ok(Some(Cow::Owned(object)))
    }

    fn data(&self, payload: &[u8], object: &mut Vec<u8>) -> Result<(), Failure> {
        let of_type = &self.events.datacontenttype;
        match self.events.data {
            Data::Json => {
                let json: &RawValue = serde_json::from_slice(payload).map_err(|_| {
                    poison(
                        format!("The payload is no JSON, which it should be by its datacontenttype {of_type}"),
                        "Correct the row, or set cloudevents.datacontenttype to what the payload is, for example \"text/plain\".",
                    )
                })?;
                object.extend_from_slice(b",\"data\":");
                object.extend_from_slice(json.get().as_bytes());
            }
            Data::Text => {
                let text = std::str::from_utf8(payload).map_err(|_| {
                    poison(
                        format!("The payload is no UTF-8 text, which it should be by its datacontenttype {of_type}"),
                        "Correct the row, or set cloudevents.datacontenttype to a binary one, for example \
                         \"application/octet-stream\".",
                    )
                })?;
                member("data", text, object);
            }
            Data::Base64 => member("data_base64", &STANDARD.encode(payload), object),
        }
        Ok(())
    }
}

/// Appends a member behind others.
fn member(name: &str, value: &str, object: &mut Vec<u8>) {
    object.extend_from_slice(b",\"");
    object.extend_from_slice(name.as_bytes());
    object.extend_from_slice(b"\":");
    object.extend_from_slice(Value::from(value).to_string().as_bytes());
}
