//! One mail as it goes out, and its form in a database.
//!
//! A pinned mail is a line of JSON (who it is from and for, its ids) and behind it the bytes of RFC 5322 that the server
//! gets. It is judged again when it is taken out, because a table is not the place where it was made.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::address::Mailbox;
use crate::notation::hex;
use crate::position::Timestamp;
use crate::sink::{Class, Failure};

/// The form of what is pinned.
const FORM: u32 = 1;
/// RFC 5322's limit of a line, without its end.
const LONGEST_LINE: usize = 998;
/// Beyond it an id is replaced by its digest, so that the header stays a line.
const LONGEST_ID: usize = 400;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mail {
    /// The message's id.
    pub(super) id: String,
    /// The sender's address.
    pub(super) from: String,
    /// The receiver's address.
    pub(super) to: String,
    /// With its angle brackets.
    pub(super) message_id: String,
    /// Header and body.
    pub(super) content: Vec<u8>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    mail: u32,
    id: String,
    from: String,
    to: String,
    message_id: String,
}

/// `<relay/id@domain>`, for a row that becomes due `<relay/id/instant@domain>`: the same for each attempt of a message,
/// another for each other message, and legal whatever the id is. `=` and two digits stand for the bytes that may not.
pub(super) fn message_id(relay: &str, id: &str, due_at: Option<Timestamp>, domain: &str) -> String {
    let mut escaped = escape(id);
    if escaped.len() > LONGEST_ID {
        // No escape begins with two of them.
        escaped = format!("=={}", hex(&Sha256::digest(id)));
    }
    let due = due_at.map(|due_at| format!("/{}", escape(&due_at.to_string()))).unwrap_or_default();
    format!("<{}/{escaped}{due}@{domain}>", escape(relay))
}

fn escape(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("={byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

impl Mail {
    /// The pinned form.
    pub(super) fn pin(&self) -> Vec<u8> {
        let (id, from, to) = (self.id.clone(), self.from.clone(), self.to.clone());
        let envelope = Envelope { mail: FORM, id, from, to, message_id: self.message_id.clone() };
        let mut pinned = serde_json::to_vec(&envelope).expect("texts are JSON");
        pinned.push(b'\n');
        pinned.extend_from_slice(&self.content);
        pinned
    }

    /// The mail of the message `id`, out of its pinned form.
    pub(super) fn unpin(pinned: &[u8], id: &str) -> Result<Self, Failure> {
        let refused = |why: &str| {
            let message = format!("What is pinned cannot be sent: {why}");
            Failure::of(Class::Poison, "pinned_mail", message, "Let the request be rendered again, or discard it")
        };
        let end = pinned.iter().position(|byte| *byte == b'\n').ok_or_else(|| refused("it has no first line"))?;
        let envelope: Envelope =
            serde_json::from_slice(&pinned[..end]).map_err(|_| refused("its first line is not ours"))?;
        if envelope.mail != FORM {
            return Err(refused("its form is another version's"));
        }
        if envelope.id != id {
            return Err(refused("it is another message's"));
        }
        for address in [&envelope.from, &envelope.to] {
            if Mailbox::parse(address).is_ok_and(|mailbox| mailbox.address() == *address) {
                continue;
            }
            return Err(refused("its addresses are none"));
        }
        let Envelope { id, from, to, message_id, .. } = envelope;
        let mail = Self { id, from, to, message_id, content: pinned[end + 1..].to_vec() };
        if !is_sendable(&mail.content) {
            return Err(refused("its content is no mail"));
        }
        Ok(mail)
    }
}

/// Whether a server takes these bytes for one mail, whatever server it is: ASCII in lines that end with CR LF, none too
/// long, and no CR or LF beside those, which servers read differently.
pub(super) fn is_sendable(content: &[u8]) -> bool {
    let Some(lines) = content.strip_suffix(b"\r\n") else { return false };
    let is_line = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.len() <= LONGEST_LINE && line.iter().all(|byte| byte.is_ascii() && !matches!(byte, b'\r' | b'\0'))
    };
    let ends_well = |(at, byte): (usize, &u8)| *byte != b'\n' || at > 0 && lines[at - 1] == b'\r';
    lines.iter().enumerate().all(ends_well)
        && lines.split(|byte| *byte == b'\n').all(is_line)
        && !lines.ends_with(b"\r")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn mail() -> Mail {
        Mail {
            id: "4\"2\n".to_owned(),
            from: "shop@example.com".to_owned(),
            to: "ann@example.com".to_owned(),
            message_id: message_id("welcome", "4\"2\n", None, "example.com"),
            content: b"Subject: x\r\n\r\ny\r\n".to_vec(),
        }
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_pg_micros(micros)
    }

    // Guarantee: failures.message-id
    #[test]
    fn a_message_id_is_legal_and_its_own_whatever_the_ids_are() {
        let long = "x".repeat(10_000);
        let longer = "x".repeat(10_001);
        let ids = [
            "",
            "1",
            "a/b",
            "a=2Fb",
            "=",
            "==",
            "a b",
            "<x>",
            "a@b",
            "\r\n",
            "\0",
            "\u{202e}",
            "A",
            "a",
            ".",
            "..",
            "[\"w\",1]",
            &long,
            &longer,
        ];
        let mut seen = BTreeSet::new();
        for relay in ["r", "r/1", "r.1", "r=2F1"] {
            for id in ids {
                for due_at in [None, Some(at(0)), Some(at(1)), Some(at(i64::MIN + 1))] {
                    let message_id = message_id(relay, id, due_at, "example.com");
                    let local = message_id.strip_prefix('<').and_then(|rest| rest.strip_suffix("@example.com>"));
                    let local = local.unwrap_or_else(|| panic!("{message_id}"));
                    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=/".contains(&byte);
                    assert!(local.bytes().all(legal), "{local}");
                    assert!(message_id.len() < 900);
                    assert!(seen.insert(message_id), "{relay:?} {id:?} {due_at:?}");
                }
            }
        }
        assert_eq!(message_id("welcome", "0198-7", None, "shop.example"), "<welcome/0198-7@shop.example>");
        let due = message_id("reminders", "7", Some(at(0)), "shop.example");
        assert_eq!(due, "<reminders/7/2000-01-01T00=3A00=3A00=2E000000Z@shop.example>");
    }

    #[test]
    fn what_is_pinned_comes_back_byte_by_byte_and_for_its_own_id_only() {
        let pinned = mail().pin();
        assert_eq!(Mail::unpin(&pinned, "4\"2\n"), Ok(mail()));
        assert!(Mail::unpin(&pinned, "42").is_err());
    }

    #[test]
    fn what_was_pinned_by_another_hand_is_not_sent() {
        let wrong = [
            Mail { to: "ann@example.com> SIZE=1".to_owned(), ..mail() },
            Mail { to: "ann@example.com>\r\nRCPT TO:<eve@example.com".to_owned(), ..mail() },
            Mail { from: "Shop <shop@example.com>".to_owned(), ..mail() },
            Mail { content: b"x\n.\r\nMAIL FROM:<eve@example.com>\r\n".to_vec(), ..mail() },
            Mail {
                content: b"x\r\n".repeat(2).split_last().map(|(_, rest)| rest.to_vec()).unwrap_or_default(),
                ..mail()
            },
            Mail { content: Vec::new(), ..mail() },
        ];
        for mail in wrong {
            let failure = Mail::unpin(&mail.pin(), &mail.id).expect_err("refused");
            assert_eq!(
                (failure.class, failure.ambiguous, failure.code.as_str()),
                (Class::Poison, false, "pinned_mail")
            );
        }
        for pinned in ["", "{}\n", "{\"mail\":1}\nx\r\n", "x\r\n"] {
            assert!(Mail::unpin(pinned.as_bytes(), "1").is_err(), "{pinned:?}");
        }
    }

    #[test]
    fn only_whole_lines_of_ascii_are_sent() {
        for good in ["a\r\n", "\r\n", "a: b\r\n\r\n.\r\n"] {
            assert!(is_sendable(good.as_bytes()), "{good:?}");
        }
        assert!(is_sendable(format!("{}\r\n", "x".repeat(998)).as_bytes()));
        let long = format!("{}\r\n", "x".repeat(999));
        for bad in ["", "a", "a\n", "a\nb\r\n", "a\rb\r\n", "a\r\r\n", "\n\r\n", "a\r", "a\0\r\n", "\u{e4}\r\n", &long]
        {
            assert!(!is_sendable(bad.as_bytes()), "{bad:?}");
        }
    }
}
