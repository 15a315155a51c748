//! Lines and answers of SMTP over a connection.
//!
//! Answers are bounded. What the server has sent before it was asked is never taken over into TLS: somebody in between
//! could have written it.

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::answer::Trouble;

/// The longest line of an answer in bytes, and what one that is longer is. RFC 5321 has 512.
const LONGEST_LINE: usize = 4 << 10;
const TOO_LONG: &str = "a line of more than 4096 bytes";
/// The most lines of an answer, and what one of more lines is: EHLO is answered by a few dozen.
const MOST_LINES: usize = 128;
const TOO_MANY: &str = "an answer of more than 128 lines";
/// What is there before a line was sent.
const UNASKED: &str = "an answer to nothing that was asked";
/// How long the rest of it is waited for, and more behind a refusal: many times what a server takes from one line to the next, and
/// only refused rows cost it.
const REST: Duration = Duration::from_millis(250);
/// The only answer that a server may give unasked: it closes the connection.
const CLOSING: u16 = 421;

/// A connection, encrypted or not.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// One end of the dialogue.
pub(super) struct Wire<S> {
    stream: S,
    /// What has come and was not read yet.
    buffer: Vec<u8>,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Its number.
    pub(super) code: u16,
    /// Its lines behind the number.
    pub(super) lines: Vec<String>,
}

impl<S> fmt::Debug for Wire<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Reply {
    /// The last line, with its number.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.code, self.lines.last().map_or("", String::as_str)).trim_end().to_owned()
    }

    /// Fails unless the number is the one that is due.
    pub(super) fn due(self, code: u16) -> Result<Self, Trouble> {
        match self.code {
            due if due == code => Ok(self),
            400..=599 => Err(Trouble::Reply { code: self.code, enhanced: self.enhanced() }),
            _ => Err(Trouble::NoSmtp("another number than the one that is due")),
        }
    }

    /// RFC 3463's code at the begin of the text: three numbers, the first that of the reply.
    fn enhanced(&self) -> Option<String> {
        let word = self.lines.last()?.split(' ').next()?;
        let numbers: Vec<&str> = word.split('.').collect();
        let is_number = |text: &&str| (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = numbers.len() == 3 && numbers.iter().all(is_number) && numbers[0] == (self.code / 100).to_string();
        fits.then(|| word.to_owned())
    }
}

impl<S: Transport> Wire<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// The connection, to go on with TLS.
    pub(super) fn into_stream(self) -> Result<S, Trouble> {
        if self.buffer.is_empty() { Ok(self.stream) } else { Err(Trouble::NoSmtp("more than was asked for")) }
    }

    /// Whether the server has said something that nobody asked for.
    pub(super) fn has_rest(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Whether there is something to be read by now, or the connection has ended; waits for nothing.
    pub(super) fn has_spoken(&mut self) -> bool {
        self.has_rest() || self.stream.read_buf(&mut self.buffer).now_or_never().is_some()
    }

    /// Whether the server says something within the time; that the connection ends is nothing said.
    async fn speaks_within(&mut self, most: Duration) -> bool {
        if self.has_rest() {
            return true;
        }
        let read = tokio::time::timeout(most, self.stream.read_buf(&mut self.buffer)).await;
        matches!(read, Ok(Ok(1..)))
    }

    /// What takes the refusal that was just read from its line: the server says more, within the time or sooner. Behind an answer
    /// too many that came just after the look of [`Self::ask`] each line is given the answer of the one before it, and the last
    /// answer is still to come. A server that closes the connection behind its refusal takes nothing back.
    pub(super) async fn says_more(&mut self, most: Duration) -> Option<Trouble> {
        if !self.speaks_within(most.min(REST)).await {
            return None;
        }
        Some(self.unasked().await).filter(|trouble| matches!(trouble, Trouble::NoSmtp(_)))
    }

    /// Sends one line and takes its answer. What is there before is no answer to it: read as one, it would put the dialogue out of
    /// step, and what the server says of its client would count against a receiver.
    pub(super) async fn ask(&mut self, line: &str) -> Result<Reply, Trouble> {
        if self.has_spoken() {
            return Err(self.unasked().await);
        }
        self.write(format!("{line}\r\n").as_bytes()).await?;
        self.reply().await
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let lost = |error: std::io::Error| Trouble::Lost(error.to_string());
        self.stream.write_all(bytes).await.map_err(lost)?;
        self.stream.flush().await.map_err(lost)
    }

    pub(super) async fn reply(&mut self) -> Result<Reply, Trouble> {
        let mut reply: Option<Reply> = None;
        for _ in 0..MOST_LINES {
            let line = self.line().await?;
            let (number, rest) = line.split_at_checked(3).ok_or(Trouble::NoSmtp("a line without a number"))?;
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            let code = number.parse().ok().filter(|code| is_number && (200..=599).contains(code));
            let code = code.ok_or(Trouble::NoSmtp("a line without a number"))?;
            let (is_last, text) = match rest.as_bytes().first() {
                None => (true, ""),
                Some(b' ') => (true, &rest[1..]),
                Some(b'-') => (false, &rest[1..]),
                Some(_) => return Err(Trouble::NoSmtp("a line without a number")),
            };
            let reply = reply.get_or_insert(Reply { code, lines: Vec::new() });
            if reply.code != code {
                return Err(Trouble::NoSmtp("lines with different numbers"));
            }
            reply.lines.push(text.to_owned());
            if is_last {
                return Ok(reply.clone());
            }
        }
        Err(Trouble::NoSmtp(TOO_MANY))
    }

    /// What it is that the server has said unasked.
    async fn unasked(&mut self) -> Trouble {
        match tokio::time::timeout(REST, self.reply()).await {
            Ok(Ok(reply)) if reply.code == CLOSING => Trouble::Reply { code: CLOSING, enhanced: reply.enhanced() },
            Ok(Err(lost @ Trouble::Lost(_))) => lost,
            Ok(Ok(_) | Err(_)) | Err(_) => Trouble::NoSmtp(UNASKED),
        }
    }

    async fn line(&mut self) -> Result<String, Trouble> {
        loop {
            let end = self.buffer.iter().position(|byte| *byte == b'\n');
            if end.unwrap_or(self.buffer.len()) > LONGEST_LINE {
                return Err(Trouble::NoSmtp(TOO_LONG));
            }
            if let Some(end) = end {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned());
            }
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|error| Trouble::Lost(error.to_string()))? == 0 {
                return Err(Trouble::Lost("the server closed the connection".to_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Step, judge};
    use super::*;
    use crate::sink::Class;

    async fn read(bytes: &[u8]) -> Result<Reply, Trouble> {
        let (mut server, client) = tokio::io::duplex(1 << 20);
        server.write_all(bytes).await.expect("room");
        drop(server);
        Wire::new(client).reply().await
    }

    #[tokio::test]
    async fn answers_of_one_line_and_of_several_are_read() {
        let reply = read(b"250-one\r\n250-\r\n250 2.0.0 queued as \xff\r\nmore").await.expect("a reply");
        assert_eq!((reply.code, reply.lines.len(), reply.text().as_str()), (250, 3, "250 2.0.0 queued as \u{fffd}"));
        assert_eq!(read(b"354\r\n").await.expect("a reply").text(), "354");
        let refused = read(b"550 5.1.1 <a@b> unknown\n").await.expect("a reply").due(250);
        assert_eq!(refused, Err(Trouble::Reply { code: 550, enhanced: Some("5.1.1".to_owned()) }));
        let strange = read(b"550 4.1.1 x\r\n").await.expect("a reply").due(250);
        assert_eq!(strange, Err(Trouble::Reply { code: 550, enhanced: None }), "a code of another class is none");
    }

    #[tokio::test]
    async fn what_is_no_answer_is_trouble() {
        let endless = "250-x\r\n".repeat(200);
        let long = "2".repeat(LONGEST_LINE * 3);
        for bytes in [
            "",
            "25",
            "ok\r\n",
            "+50 x\r\n",
            "250x\r\n",
            "250-a\r\n251 b\r\n",
            "199 x\r\n",
            "600 x\r\n",
            &endless,
            &long,
        ] {
            assert!(read(bytes.as_bytes()).await.is_err(), "{bytes:?}");
        }
    }

    // Guarantee: failures.smtp-answers
    #[tokio::test]
    async fn lines_of_an_answer_are_bounded_and_the_bound_is_named() {
        let answer = |lines: usize| format!("{}250 done\r\n", "250-more\r\n".repeat(lines - 1));
        let whole = read(answer(MOST_LINES).as_bytes()).await.expect("a reply");
        assert_eq!((whole.lines.len(), whole.text().as_str()), (MOST_LINES, "250 done"));
        let bounds = [
            (answer(MOST_LINES + 1), TOO_MANY, MOST_LINES),
            (answer(1_000), TOO_MANY, MOST_LINES),
            (format!("250-{}\r\n250 done\r\n", "x".repeat(LONGEST_LINE)), TOO_LONG, LONGEST_LINE),
            ("2".repeat(LONGEST_LINE * 3), TOO_LONG, LONGEST_LINE),
        ];
        for (bytes, why, bound) in bounds {
            assert_eq!(read(bytes.as_bytes()).await, Err(Trouble::NoSmtp(why)));
            assert!(why.contains(&format!("more than {bound} ")), "{why}");
            for step in [Step::Hello, Step::Dot] {
                let failure = judge(step, &Trouble::NoSmtp(why), "mail:25");
                assert_eq!((failure.class, failure.ambiguous), (Class::Retry, step == Step::Dot), "{failure:?}");
                assert!(failure.message.contains(why), "{}", failure.message);
            }
        }
    }

    // Guarantee: failures.smtp-step
    #[tokio::test]
    async fn what_is_there_before_a_line_was_sent_is_no_answer_to_it() {
        let closing = Trouble::Reply { code: CLOSING, enhanced: Some("4.3.2".to_owned()) };
        let unasked = || Trouble::NoSmtp(UNASKED);
        let said: [(&[u8], Trouble); 5] = [
            (b"250 ok\r\n", unasked()),
            (b"550 5.1.1 no\r\n250 ok\r\n", unasked()),
            (b"354 go\r\n", unasked()),
            (b"25", unasked()),
            (b"421 4.3.2 closing\r\n", closing),
        ];
        for (bytes, trouble) in said {
            let (mut server, client) = tokio::io::duplex(1 << 10);
            server.write_all(bytes).await.expect("room");
            let mut wire = Wire::new(client);
            assert_eq!(wire.ask("MAIL FROM:<a@example.com>").await, Err(trouble), "{bytes:?}");
            let mut heard = Vec::new();
            drop(wire);
            server.read_to_end(&mut heard).await.expect("reads");
            assert!(heard.is_empty(), "nothing is begun with a server that is out of step: {heard:?}");
        }
        let (server, client) = tokio::io::duplex(1 << 10);
        drop(server);
        assert!(matches!(Wire::new(client).ask("RSET").await, Err(Trouble::Lost(_))));
    }

    #[tokio::test]
    async fn what_came_unasked_is_not_taken_over_into_tls() {
        let (mut server, client) = tokio::io::duplex(1 << 10);
        server.write_all(b"220 go ahead\r\n250 injected\r\n").await.expect("room");
        let mut wire = Wire::new(client);
        assert_eq!(wire.reply().await.expect("a reply").code, 220);
        assert!(wire.has_rest() && wire.into_stream().is_err());
    }
}
