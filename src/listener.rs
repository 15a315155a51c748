//! A listener whose connections are bounded in number, life and headers, so that slow or silent clients cannot use up the
//! process. Binding is apart from serving, so that a port in use ends the start before any work begins.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

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
    /// The most at once. For a further one the oldest that has not asked yet is closed; when all have asked, it waits.
    pub(crate) connections: usize,
    /// How long a client may take to ask its first question and get its answer.
    pub(crate) question: Duration,
    /// How long the connection lasts from an answer on.
    pub(crate) life: Duration,
    /// Whether each answer gives it that time, or the first one only.
    pub(crate) renewed: bool,
}

/// Connections that have not asked yet, the oldest first.
#[derive(Debug, Default)]
struct Silent {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

type Shared = Arc<Mutex<Silent>>;

fn lock(silent: &Shared) -> MutexGuard<'_, Silent> {
    silent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listener whose connections are bounded.
pub(crate) struct Bounded {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    bounds: Bounds,
    silent: Shared,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener, bounds: Bounds) -> Self {
        Self { listener, permits: Arc::new(Semaphore::new(bounds.connections)), bounds, silent: Shared::default() }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // axum's own accept waits and tries again when the process has run out of file descriptors.
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        if self.permits.available_permits() == 0
            && let Some((_, oldest)) = lock(&self.silent).waiting.pop_first()
        {
            oldest.cancel();
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
        let closed = CancellationToken::new();
        let number = {
            let mut silent = lock(&self.silent);
            silent.next += 1;
            let number = silent.next;
            silent.waiting.insert(number, closed.clone());
            number
        };
        let connection = Connection {
            stream,
            end: Box::pin(sleep(self.bounds.question)),
            closed: Box::pin(closed.cancelled_owned()),
            bounds: self.bounds,
            silent: Arc::clone(&self.silent),
            number,
            header: Header::default(),
            answered: false,
            _permit: permit,
        };
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Whether the first request's header has come to its end.
#[derive(Debug, Default)]
struct Header {
    /// Empty lines before the request do not count.
    has_begun: bool,
    /// How much of the empty line that ends it has come last.
    matched: usize,
    is_whole: bool,
}

impl Header {
    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // A server takes bare line feeds, too.
            self.matched = match byte {
                b'\n' => self.matched + usize::from(self.has_begun),
                b'\r' => self.matched,
                _ => 0,
            };
            self.has_begun |= !matches!(byte, b'\r' | b'\n');
            self.is_whole |= self.matched == 2;
        }
    }
}

/// A connection that fails to read when its time is over, or when it is closed for another.
pub(crate) struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    bounds: Bounds,
    silent: Shared,
    number: u64,
    header: Header,
    answered: bool,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    fn over(&mut self, context: &mut Context<'_>) -> bool {
        self.end.as_mut().poll(context).is_ready() || self.closed.as_mut().poll(context).is_ready()
    }

    fn has_asked(&self) {
        lock(&self.silent).waiting.remove(&self.number);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.has_asked();
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
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if !self.header.is_whole {
            self.header.read(&buffer.filled()[before..]);
            if self.header.is_whole {
                self.has_asked();
            }
        }
        polled
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

    #[tokio::test]
    async fn oldest_silent_connection_gives_way_to_a_new_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("bound");
        let hour = Duration::from_secs(3600);
        let bounded = Bounded::new(listener, Bounds { connections: 3, question: hour, life: hour, renewed: false });
        let (began, goes_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let (begins, may_go_on) = (Arc::clone(&began), Arc::clone(&goes_on));
        let slow = axum::routing::get(|| async move {
            begins.notify_one();
            may_go_on.notified().await;
            "slow"
        });
        let router = axum::Router::new().route("/slow", slow).route("/", axum::routing::get(|| async { "quick" }));
        tokio::spawn(async move { axum::serve(bounded, router).await });
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        // It has asked and waits for its answer: it is never closed for others.
        let mut asked = TcpStream::connect(address).await.expect("connects");
        asked.write_all(request("/slow").as_bytes()).await.expect("asks");
        began.notified().await;
        let mut silent = Vec::new();
        for _ in 0..20 {
            let mut dribbling = TcpStream::connect(address).await.expect("connects");
            dribbling.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n").await.expect("begins to ask");
            silent.push(dribbling);
        }
        let mut answer = String::new();
        let mut probe = TcpStream::connect(address).await.expect("connects");
        probe.write_all(request("/").as_bytes()).await.expect("asks");
        let read = tokio::time::timeout(Duration::from_secs(10), probe.read_to_string(&mut answer)).await;
        read.expect("not behind those that are silent").expect("is answered");
        assert!(answer.ends_with("quick"), "{answer}");
        goes_on.notify_one();
        asked.read_to_string(&mut answer).await.expect("is answered");
        assert!(answer.ends_with("slow"), "{answer}");
    }
}
