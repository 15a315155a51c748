//! The key by which a receiver recognises repeats of a message.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::message::Message;

/// What cannot stand in a header, and `%`, so that different ids stay different.
const NOT_IN_KEY: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// `<relay>/<id>`, for due work `<relay>/<id>/<due instant>`: the same for each attempt of a message, another for each other
/// message.
pub(super) fn of(relay: &str, message: &Message<'_>) -> String {
    let encode = |text| utf8_percent_encode(text, NOT_IN_KEY);
    let mut key = format!("{}/{}", encode(relay), encode(message.id));
    if let Some(due_at) = message.due_at() {
        key.push_str(&format!("/{due_at}"));
    }
    key
}
