//! One dialogue with a server: greeting, EHLO, TLS, AUTH, then mail after mail.
//!
//! Written out rather than left to a library, because a delivery that ends early must say at which line it did: only the
//! line with a single dot hands the mail over.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use native_tls::TlsConnector;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpStream;
use tokio::time::Instant;

mod connection;

use super::answer::{Missing, Step, Trouble};
use super::mail::Mail;
use super::wire::{Reply, Transport, Wire};
use crate::secret::Secret;
use crate::tls::{self, Verify};

/// The content is written in pieces: a copy with its dots would be as large as the mail.
const PIECE: usize = 64 << 10;

/// How the way to the server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte.
    Tls,
    /// TLS after STARTTLS; without it nothing is sent.
    StartTls,
    /// None: for servers on this machine.
    None,
}

/// Where the server is, and how it is spoken to.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its host, which its certificate must name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the way to it is protected.
    pub security: Security,
    /// A user's name and password.
    pub credentials: Option<(String, Secret)>,
    /// Authorities instead of the system's; read at each connection.
    pub ca_file: Option<PathBuf>,
    /// What the relay calls itself; its own address when absent.
    pub hello_name: Option<String>,
}

/// What the server offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offers {
    starttls: bool,
    plain: bool,
    login: bool,
    size: bool,
    /// The largest mail, if the server has said so.
    pub(super) limit: Option<usize>,
}

/// An open dialogue, signed in.
pub(super) struct Session {
    wire: Wire<Box<dyn Transport>>,
    pub(super) offers: Offers,
    /// When the server was last heard.
    pub(super) heard: Instant,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("offers", &self.offers).finish_non_exhaustive()
    }
}

impl Server {
    /// `host:port`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The client's side of TLS, which always verifies.
    pub(super) fn connector(&self) -> Result<TlsConnector, String> {
        tls::connector(Verify::Name, self.ca_file.as_deref(), &[])
    }

    /// Opens a dialogue; `step` says how far it has come, also when this is dropped.
    pub(super) async fn open(&self, step: &mut Step) -> Result<Session, Trouble> {
        *step = Step::Connect;
        let lost = |error: std::io::Error| Trouble::Lost(error.to_string());
        let stream = connection::to(&self.host, self.port).await.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        let name = match &self.hello_name {
            Some(name) => name.clone(),
            None => literal(stream.local_addr().map_err(lost)?),
        };
        let (mut wire, offers) = match self.security {
            Security::Tls => {
                let mut wire = Wire::new(self.encrypted(stream).await?);
                greeted(&mut wire, step).await?;
                let offers = hello(&mut wire, &name, step).await?;
                (wire, offers)
            }
            Security::StartTls => {
                let mut wire = Wire::new(stream);
                greeted(&mut wire, step).await?;
                let offers = hello(&mut wire, &name, step).await?;
                *step = Step::StartTls;
                if !offers.starttls {
                    return Err(Trouble::NotOffered(Missing::StartTls));
                }
                wire.ask("STARTTLS").await?.due(220)?;
                let mut wire = Wire::new(self.encrypted(wire.into_stream()?).await?);
                // What was said in clear does not count.
                let offers = hello(&mut wire, &name, step).await?;
                (wire, offers)
            }
            Security::None => {
                let mut wire: Wire<Box<dyn Transport>> = Wire::new(Box::new(stream));
                greeted(&mut wire, step).await?;
                let offers = hello(&mut wire, &name, step).await?;
                (wire, offers)
            }
        };
        if let Some((user, password)) = &self.credentials {
            *step = Step::Auth;
            sign_in(&mut wire, offers, user, &readable(password)?).await?;
        }
        Ok(Session { wire, offers, heard: Instant::now() })
    }

    async fn encrypted(&self, stream: TcpStream) -> Result<Box<dyn Transport>, Trouble> {
        let connector = tokio_native_tls::TlsConnector::from(self.connector().map_err(Trouble::Lost)?);
        let stream = connector.connect(&self.host, stream).await;
        Ok(Box::new(stream.map_err(|error| Trouble::Lost(error.to_string()))?))
    }
}

fn readable(password: &Secret) -> Result<SecretString, Trouble> {
    let unusable = |why: &str| match password {
        Secret::File(path) => Trouble::Secret(format!("{}: {why}", path.display())),
        Secret::Value(_) => Trouble::Secret(why.to_owned()),
    };
    let secret = password.read().map_err(|error| unusable(&error.to_string()))?;
    let text = secret.expose_secret();
    if text.is_empty() || text.contains('\0') {
        return Err(unusable("it is empty or has a NUL character"));
    }
    Ok(secret)
}

/// RFC 5321's form of an address, for clients without a name.
fn literal(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => format!("[{}]", address.ip()),
        SocketAddr::V6(address) => format!("[IPv6:{}]", address.ip()),
    }
}

async fn greeted<S: Transport>(wire: &mut Wire<S>, step: &mut Step) -> Result<(), Trouble> {
    *step = Step::Greeting;
    wire.reply().await?.due(220).map(drop)
}

async fn hello<S: Transport>(wire: &mut Wire<S>, name: &str, step: &mut Step) -> Result<Offers, Trouble> {
    *step = Step::Hello;
    Ok(offers(&wire.ask(&format!("EHLO {name}")).await?.due(250)?))
}

fn offers(reply: &Reply) -> Offers {
    let mut offers = Offers::default();
    for line in &reply.lines[1..] {
        let line = line.to_ascii_uppercase();
        let mut words = line.split([' ', '=']).filter(|word| !word.is_empty());
        match words.next() {
            Some("STARTTLS") => offers.starttls = true,
            Some("SIZE") => {
                offers.size = true;
                offers.limit = words.next().and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0);
            }
            Some("AUTH") => {
                for word in words {
                    offers.plain |= word == "PLAIN";
                    offers.login |= word == "LOGIN";
                }
            }
            Some(_) | None => {}
        }
    }
    offers
}

async fn sign_in<S: Transport>(
    wire: &mut Wire<S>,
    offers: Offers,
    user: &str,
    password: &SecretString,
) -> Result<(), Trouble> {
    let password = password.expose_secret();
    let reply = if offers.plain {
        wire.ask(&format!("AUTH PLAIN {}", STANDARD.encode(format!("\0{user}\0{password}")))).await?
    } else if offers.login {
        wire.ask("AUTH LOGIN").await?.due(334)?;
        wire.ask(&STANDARD.encode(user)).await?.due(334)?;
        wire.ask(&STANDARD.encode(password)).await?
    } else {
        return Err(Trouble::NotOffered(Missing::Auth));
    };
    reply.due(235).map(drop)
}

impl Session {
    /// Whether the server is still there and ready for a new mail: on a connection that it has closed meanwhile, nothing
    /// must be begun.
    pub(super) async fn is_fresh(&mut self, patience: Duration) -> bool {
        let reset = async { self.wire.ask("RSET").await?.due(250) };
        let answered = matches!(tokio::time::timeout(patience, reset).await, Ok(Ok(_)));
        self.heard = Instant::now();
        answered && !self.wire.has_spoken()
    }

    /// Hands one mail over. `step` says how far it has come, also when this is dropped.
    pub(super) async fn send(&mut self, mail: &Mail, step: &mut Step) -> Result<Reply, Trouble> {
        let bytes = mail.content.len();
        if let Some(limit) = self.offers.limit.filter(|limit| bytes > *limit) {
            return Err(Trouble::TooLarge { bytes, limit });
        }
        *step = Step::Mail;
        let size = if self.offers.size { format!(" SIZE={bytes}") } else { String::new() };
        self.wire.ask(&format!("MAIL FROM:<{}>{size}", mail.from)).await?.due(250)?;
        *step = Step::Rcpt;
        self.rcpt(&mail.to).await?;
        *step = Step::Data;
        self.wire.ask("DATA").await?.due(354)?;
        *step = Step::Content;
        let mut at_begin = true;
        for piece in mail.content.chunks(PIECE) {
            if let Err(trouble) = self.wire.write(&stuffed(piece, &mut at_begin)).await {
                return Err(self.last_words().await.unwrap_or(trouble));
            }
        }
        // What is there before the mail has ended is no answer to it, whatever it says.
        if self.wire.has_spoken() {
            let early = Trouble::NoSmtp("an answer to a mail that has not ended");
            return Err(self.last_words().await.unwrap_or(early));
        }
        // Noted before a byte of the last line is written: whoever stops from here on does not know.
        *step = Step::Dot;
        self.wire.write(b".\r\n").await?;
        let reply = self.wire.reply().await?.due(250)?;
        self.heard = Instant::now();
        Ok(reply)
    }

    /// Why the refusal that has just ended [`Self::send`] is no answer to its line; see the wire's.
    pub(super) async fn says_more(&mut self, most: Duration) -> Option<Trouble> {
        self.wire.says_more(most).await
    }

    async fn rcpt(&mut self, to: &str) -> Result<(), Trouble> {
        let reply = self.wire.ask(&format!("RCPT TO:<{to}>")).await?;
        // "Will forward": taken as well.
        if reply.code == 251 { Ok(()) } else { reply.due(250).map(drop) }
    }

    /// The refusal of a server that closed the connection while the content was written, if it can still be read.
    async fn last_words(&mut self) -> Option<Trouble> {
        let reply = tokio::time::timeout(Duration::from_millis(250), self.wire.reply()).await.ok()?.ok()?;
        reply.due(250).err()
    }
}

/// A piece of the content with a second dot before each line that begins with one; `at_begin` is carried to the next piece.
fn stuffed(piece: &[u8], at_begin: &mut bool) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(piece.len() + 64);
    for byte in piece {
        if *at_begin && *byte == b'.' {
            stuffed.push(b'.');
        }
        stuffed.push(*byte);
        *at_begin = *byte == b'\n';
    }
    stuffed
}

#[cfg(test)]
mod garbled_tests;
#[cfg(test)]
mod tests;
