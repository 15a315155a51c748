//! What a receiver said when it took a message.

use crate::visible::visible;

/// The most bytes that are kept of a reply.
const LONGEST_REPLY: usize = 1 << 10;

/// A receiver's yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The message's id at the receiver, if it has one.
    pub id: Option<String>,
    /// What the receiver said, in its own words: up to 1 KiB, with control characters as escapes.
    pub reply: String,
}

impl Receipt {
    /// Of a receiver's words, whatever they are.
    #[must_use]
    pub fn new(id: Option<String>, reply: &str) -> Self {
        let reply = visible(reply);
        let is_within = |(at, c): &(usize, char)| at + c.len_utf8() <= LONGEST_REPLY;
        Self { id, reply: reply.char_indices().take_while(is_within).map(|(_, c)| c).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_kept_short_and_on_one_line() {
        assert_eq!(Receipt::new(None, "250 ok\r\n").reply, "250 ok\\u{d}\\u{a}");
        assert_eq!(Receipt::new(None, &"ü".repeat(1000)).reply, "ü".repeat(512));
    }
}
