//! Which proofs of identity a server may ask for, before anything is sent to it.
//!
//! The driver answers whatever it is asked, a request for the password itself too. So the first message of the server is
//! read on its way to the driver: one that asks for what is not allowed ends the connection, and nothing was sent. The driver also
//! reads a message of any length; what a server says before the session is open is therefore bounded here.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready as poll_ready};

use postgres_native_tls::{MakeTlsConnector, TlsConnector, TlsStream as Encrypted};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// A way to prove who one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Nothing is asked.
    None,
    /// The password itself.
    Password,
    /// A hash of it that is as good as the password.
    Md5,
    /// A proof that the password is known.
    Scram,
}

impl Method {
    /// All, by the words that libpq's `require_auth` has for them.
    pub const ALL: [(&'static str, Self); 4] =
        [("none", Self::None), ("password", Self::Password), ("md5", Self::Md5), ("scram-sha-256", Self::Scram)];

    /// What is allowed when nothing is configured: without TLS all but the password itself.
    pub(super) fn allowed(encrypted: bool) -> Vec<Self> {
        Self::ALL
            .into_iter()
            .map(|(_, method)| method)
            .filter(|method| encrypted || *method != Self::Password)
            .collect()
    }

    /// By the number in the server's message; none for one that the driver has not got.
    fn of(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            3 => Some(Self::Password),
            5 => Some(Self::Md5),
            10 => Some(Self::Scram),
            _ => None,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no proof of identity",
            Self::Password => "the password in clear text",
            Self::Md5 => "an md5 hash of the password",
            Self::Scram => "scram-sha-256",
        })
    }
}

/// The server asks for what is not allowed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the server asks for {0}")]
pub(super) struct RefusedMethod(pub(super) Method);

/// The method that was refused, when that is why a connection failed.
pub(super) fn refused(error: &tokio_postgres::Error) -> Option<Method> {
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.find_map(|cause| Some(cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<RefusedMethod>()?.0))
}

/// Type, length and number of the message that asks.
const QUESTION: usize = 9;
/// The most bytes that a server may send before the session is open: a hundred times what one says that greets with long notices.
const SIGN_IN: usize = 1 << 20;

/// What the streams of one attempt to connect are held to.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    allowed: Vec<Method>,
    /// Set once the session is open, and what comes is what was asked for.
    is_open: Arc<AtomicBool>,
}

impl Rules {
    pub(super) fn new(allowed: Vec<Method>) -> Self {
        Self { allowed, is_open: Arc::default() }
    }

    /// The session is open.
    pub(super) fn opened(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }
}

/// A stream whose first message from the server is read. See the module.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    stream: S,
    rules: Rules,
    question: Vec<u8>,
    read: usize,
}

impl<S> Guarded<S> {
    fn new(stream: S, rules: Rules) -> Self {
        Self { stream, rules, question: Vec::with_capacity(QUESTION), read: 0 }
    }

    fn see(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.rules.is_open.load(Ordering::Relaxed) {
            self.read += bytes.len();
            if self.read > SIGN_IN {
                let what = format!("the server has sent more than {SIGN_IN} bytes before the session was open");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        if self.question.len() == QUESTION {
            return Ok(());
        }
        self.question.extend(bytes.iter().take(QUESTION - self.question.len()));
        // Another first message than this one ends the driver's attempt.
        let Ok([b'R', _, _, _, _, number @ ..]) = <[u8; QUESTION]>::try_from(self.question.as_slice()) else {
            return Ok(());
        };
        match Method::of(u32::from_be_bytes(number)) {
            Some(method) if !self.rules.allowed.contains(&method) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, RefusedMethod(method)))
            }
            _ => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        poll_ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.see(buffer.filled().get(before..).unwrap_or_default()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl TlsStream for Guarded<Socket> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl TlsStream for Guarded<Encrypted<Socket>> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// In the place of a TLS connector: gives the stream as it is, guarded.
#[derive(Clone, Debug)]
pub(super) struct Plain(pub(super) Rules);

impl MakeTlsConnect<Socket> for Plain {
    type Stream = Guarded<Socket>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(self.clone())
    }
}

impl TlsConnect<Socket> for Plain {
    type Stream = Guarded<Socket>;
    type Error = Infallible;
    type Future = Ready<Result<Guarded<Socket>, Infallible>>;

    fn connect(self, stream: Socket) -> Self::Future {
        ready(Ok(Guarded::new(stream, self.0)))
    }
}

/// A TLS connector whose streams are guarded.
pub(super) struct Secure<C>(pub(super) C, pub(super) Rules);

impl MakeTlsConnect<Socket> for Secure<MakeTlsConnector> {
    type Stream = Guarded<Encrypted<Socket>>;
    type TlsConnect = Secure<TlsConnector>;
    type Error = native_tls::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Self::TlsConnect, Self::Error> {
        let connector = <MakeTlsConnector as MakeTlsConnect<Socket>>::make_tls_connect(&mut self.0, domain)?;
        Ok(Secure(connector, self.1.clone()))
    }
}

impl TlsConnect<Socket> for Secure<TlsConnector> {
    type Stream = Guarded<Encrypted<Socket>>;
    type Error = native_tls::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, native_tls::Error>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let Self(connector, rules) = self;
        let connecting = TlsConnect::<Socket>::connect(connector, stream);
        Box::pin(async move { Ok(Guarded::new(connecting.await?, rules)) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// What comes of a question for this number, in reads of so many bytes.
    async fn asked(number: u8, allowed: Vec<Method>, step: usize) -> io::Result<Vec<u8>> {
        let question = [b'R', 0, 0, 0, 8, 0, 0, 0, number, b'S'];
        let (mut guarded, mut got) = (Guarded::new(&question[..], Rules::new(allowed)), Vec::new());
        let mut part = vec![0; step];
        loop {
            match guarded.read(&mut part).await? {
                0 => return Ok(got),
                count => got.extend_from_slice(&part[..count]),
            }
        }
    }

    // Guarantee: failures.clear-text
    #[tokio::test]
    async fn password_in_clear_text_needs_tls_or_consent() {
        for step in [1, 4, 64] {
            let refused = asked(3, Method::allowed(false), step).await;
            assert!(refused.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied), "{step}");
            for (number, allowed) in
                [(3, Method::allowed(true)), (3, vec![Method::Password]), (10, Method::allowed(false))]
            {
                assert_eq!(asked(number, allowed, step).await.expect("allowed").len(), 10);
            }
            assert!(asked(0, vec![Method::Scram], step).await.is_err(), "a server that asks for nothing");
        }
    }
}
