//! What a receiver says of a message that it has accepted.

/// The longest reply that is kept.
const LONGEST: usize = 1024;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The receiver's own id of the message, if it gave one; of an email its Message-ID.
    pub id: Option<String>,
    /// What it said, in a line of at most 1 KiB.
    pub reply: String,
}

impl Receipt {
    /// A receipt; what is too long is cut, and what a terminal or PostgreSQL cannot take becomes a blank.
    #[must_use]
    pub fn new(id: Option<&str>, reply: &str) -> Self {
        Self { id: id.map(line).filter(|id| !id.is_empty()), reply: line(reply) }
    }
}

fn line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut line = plain.trim().to_owned();
    let end = (0..=LONGEST.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    line.truncate(end);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receivers_words_are_one_short_line() {
        let receipt = Receipt::new(Some("\0"), &format!("250 ok\r\nforged{}", "ä".repeat(2_000)));
        assert_eq!(receipt.id, None);
        assert!(receipt.reply.starts_with("250 ok  forged"), "{}", receipt.reply);
        assert!(receipt.reply.len() <= LONGEST && !receipt.reply.contains(['\r', '\n']));
    }
}
