//! A listener whose connections are bounded in number, life and headers, so that slow or silent clients cannot use up the
//! process. Binding is apart from serving, so that a port in use ends the start before any work begins.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// The longest path and query, percent-encoded.
const URL_LIMIT: usize = 4 << 10;
/// The most bytes of header names and values.
const HEADER_LIMIT: usize = 16 << 10;

/// The address cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {} (set [{section}] listen)", reason(.cause))]
pub struct BindError {
    address: SocketAddr,
    section: &'static str,
    cause: io::Error,
}

/// Takes the address that `listen` of this section of the configuration names.
///
/// # Errors
/// When another process has it, or this one may not.
pub async fn bind(address: SocketAddr, section: &'static str) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|cause| BindError { address, section, cause })
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "address already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Refuses long URLs and headers.
pub(crate) async fn limits(request: Request, next: Next) -> Response {
    let url = request.uri().path_and_query().map_or(0, |url| url.as_str().len());
    if url > URL_LIMIT {
        return StatusCode::URI_TOO_LONG.into_response();
    }
    let headers: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if headers > HEADER_LIMIT {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    next.run(request).await
}

/// How many connections, and how long each may last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most at once; more wait to be accepted.
    pub(crate) connections: usize,
    /// How long a client may take to ask its first question and get its answer.
    pub(crate) question: Duration,
    /// How long the connection lasts from an answer on.
    pub(crate) life: Duration,
    /// Whether each answer gives it that time, or the first one only.
    pub(crate) renewed: bool,
}

/// A listener whose connections are bounded.
pub(crate) struct Bounded {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    bounds: Bounds,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener, bounds: Bounds) -> Self {
        Self { listener, permits: Arc::new(Semaphore::new(bounds.connections)), bounds }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
        // axum's own accept waits and tries again when the process has run out of file descriptors.
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        let end = Box::pin(sleep(self.bounds.question));
        (Connection { stream, end, bounds: self.bounds, answered: false, _permit: permit }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails to read when its time is over.
pub(crate) struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    bounds: Bounds,
    answered: bool,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    fn over(&mut self, context: &mut Context<'_>) -> bool {
        self.end.as_mut().poll(context).is_ready()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.over(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.over(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if !self.answered || self.bounds.renewed {
            self.answered = true;
            let life = self.bounds.life;
            self.end.as_mut().reset(Instant::now() + life);
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_silent_connection_ends_with_its_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
        let (question, life) = (Duration::from_millis(50), Duration::from_secs(3600));
        let bounded = Bounded::new(listener, Bounds { connections: 1, question, life, renewed: false });
        tokio::spawn(async move { axum::serve(bounded, axum::Router::new()).await });
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.expect("the server closes");
    }
}
