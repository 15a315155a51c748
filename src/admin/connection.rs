//! Connections of bounded number and life, so that slow or silent clients cannot use up the process.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// The most connections at once; more wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long a client may take to ask its first question: one that dribbles must not keep a probe waiting for long.
const QUESTION: Duration = Duration::from_secs(5);
/// The longest life of a connection from its first answer: more than a slow scrape, less than what a stuck client could
/// hold for ever.
const LIFE: Duration = Duration::from_secs(30);

/// A listener whose connections are bounded.
pub(super) struct Bounded {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    question: Duration,
}

impl Bounded {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, permits: Arc::new(Semaphore::new(CONNECTIONS)), question: QUESTION }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
        // axum's own accept waits and tries again when the process has run out of file descriptors.
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        (Connection { stream, end: Box::pin(sleep(self.question)), answered: false, _permit: permit }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails to read when its time is over.
pub(super) struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
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
        if !self.answered {
            self.answered = true;
            self.end.as_mut().reset(Instant::now() + LIFE);
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
        let bounded = Bounded { question: Duration::from_millis(50), ..Bounded::new(listener) };
        tokio::spawn(async move { axum::serve(bounded, axum::Router::new()).await });
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.expect("the server closes");
    }
}
