//! One connection: bounded in life, and in the bytes of each request's header before they are read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::places::ConnectionPlace;
use super::{Bounds, HEADER_LIMIT, URL_LIMIT};

/// The most bytes that are read of a request before its header is whole: URL, names and values, and what is between them.
const HEAD_LIMIT: usize = URL_LIMIT + HEADER_LIMIT + (4 << 10);
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// An answer that is not yet one.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How much of a request's header has come.
#[derive(Debug, Default)]
struct Header {
    bytes: usize,
    /// Empty lines before the request do not count.
    has_begun: bool,
    /// How much of the empty line that ends it has come last.
    matched: usize,
    is_whole: bool,
}

impl Header {
    fn read(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
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

/// A connection that fails to read when its time is over, when a header is too large, or when it is closed for another.
pub(crate) struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    bounds: Bounds,
    place: ConnectionPlace,
    header: Header,
    /// Whether an answer is on its way.
    answers: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, mut place: ConnectionPlace, bounds: Bounds) -> Self {
        place.waits();
        Self {
            stream,
            end: Box::pin(sleep(bounds.question)),
            closed: Box::pin(place.closed().cancelled_owned()),
            bounds,
            place,
            header: Header::default(),
            answers: false,
        }
    }

    fn over(&mut self, context: &mut Context<'_>) -> bool {
        self.end.as_mut().poll(context).is_ready() || self.closed.as_mut().poll(context).is_ready()
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
        if !self.header.is_whole && self.header.bytes >= HEAD_LIMIT {
            // Best effort: a client that does not read it finds the connection closed.
            let _ = self.stream.try_write(TOO_LARGE);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if !self.header.is_whole {
            self.header.read(&buffer.filled()[before..]);
            if self.header.is_whole {
                self.place.works();
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
        // Not with each byte: a client that reads one answer byte by byte has no more time for it than others.
        if !self.answers {
            let life = self.bounds.life;
            self.end.as_mut().reset(Instant::now() + life);
        }
        self.answers |= bytes != CONTINUE;
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        match polled {
            Poll::Ready(_) => self.place.works(),
            Poll::Pending => self.place.waits(),
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        if self.answers && polled.is_ready() {
            // The whole answer is with the system; the next request's header begins.
            self.answers = false;
            self.header = Header::default();
            self.place.answered();
            self.place.waits();
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
