//! A message that is sent once, as it is kept until then: the values that were read of its row.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::message::{Field, Message};
use crate::position::Timestamp;
use crate::sink::{Class, Failure};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Pinned {
    /// Microseconds of PostgreSQL's epoch.
    created_at: i64,
    due: bool,
    /// What the values are of.
    fields: Vec<String>,
    /// In base64.
    values: Vec<Option<String>>,
}

fn words(fields: &[Field]) -> Vec<String> {
    fields.iter().map(ToString::to_string).collect()
}

pub(super) fn pin(fields: &[Field], message: &Message<'_>) -> Vec<u8> {
    let values = (0..fields.len()).map(|field| message.value(field).map(|value| STANDARD.encode(value)));
    let pinned = Pinned {
        created_at: message.created_at.pg_micros(),
        due: message.due_at().is_some(),
        fields: words(fields),
        values: values.collect(),
    };
    serde_json::to_vec(&pinned).expect("texts and numbers make JSON")
}

/// The message again.
///
/// # Errors
/// When it was pinned by another hand, or for a sink that reads other fields.
pub(super) fn unpin(fields: &[Field], id: &str, pinned: &[u8]) -> Result<Batch, Failure> {
    let damaged = |message: &str| {
        let hint = "It was pinned by a sink that read other fields: make the request again.";
        Failure::of(Class::Poison, "custom_pinned", message, hint)
    };
    let pinned: Pinned = serde_json::from_slice(pinned).map_err(|_| damaged("What was pinned is no message"))?;
    if pinned.fields != words(fields) || pinned.values.len() != fields.len() {
        return Err(damaged("What was pinned has other fields than the sink reads now"));
    }
    let values: Result<Vec<Option<Vec<u8>>>, _> =
        pinned.values.iter().map(|value| value.as_ref().map(|value| STANDARD.decode(value)).transpose()).collect();
    let values = values.map_err(|_| damaged("What was pinned is no message"))?;
    let mut batch = if pinned.due { Batch::of_due_rows(fields.len()) } else { Batch::new(fields.len()) };
    batch.push(Timestamp::from_pg_micros(pinned.created_at), id, values.iter().map(Option::as_deref));
    Ok(batch)
}
