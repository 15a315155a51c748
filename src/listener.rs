//! A listener whose connections are bounded in number, life and headers, so that slow or silent clients cannot use up the
//! process. Binding is apart from serving, so that a port in use ends the start before any work begins.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};

mod connection;
mod places;

use connection::Connection;
use places::Places;

/// The longest path and query, percent-encoded.
const URL_LIMIT: usize = 4 << 10;
/// The most bytes of header names and values.
const HEADER_LIMIT: usize = 16 << 10;

/// The address cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {} ({})", reason(.cause), fix(.cause, .section))]
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

fn fix(error: &io::Error, section: &str) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => {
            "raise the limit of open files of this process: LimitNOFILE= of systemd, or ulimit -n".to_owned()
        }
        Some(Errno::NFILE) => "raise the limit of open files of this machine: sysctl fs.file-max".to_owned(),
        _ => format!("set [{section}] listen"),
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
    /// The most at once. For a further one the oldest that waits for its client is closed; if none does, it waits.
    pub(crate) connections: usize,
    /// How long a client may take to ask its first question and get its answer.
    pub(crate) question: Duration,
    /// How long the connection lasts from the beginning of its last answer on; of an answer in parts, such as a stream of events, each
    /// part counts that its client has room for.
    pub(crate) life: Duration,
}

impl Bounds {
    /// The most of one peer, so that others always find some.
    const fn per_peer(&self) -> usize {
        self.connections - self.connections / 4
    }
}

/// A listener whose connections are bounded.
pub(crate) struct Bounded {
    listener: TcpListener,
    places: Places,
    bounds: Bounds,
    /// The last connection for which there was no place: it gets the next one of its peer, unless a later one comes before.
    refused: Option<(TcpStream, SocketAddr)>,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener, bounds: Bounds) -> Self {
        Self { listener, places: Places::new(bounds.connections, bounds.per_peer()), bounds, refused: None }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            tokio::select! {
                // axum's own accept waits and retries when the process has run out of file descriptors.
                accepted = axum::serve::Listener::accept(&mut self.listener) => self.refused = Some(accepted),
                () = self.places.changed(), if self.refused.is_some() => {}
            }
            let Some((_, peer)) = &self.refused else { continue };
            let Some(place) = self.places.take(peer.ip()).await else { continue };
            if let Some((stream, peer)) = self.refused.take() {
                return (Connection::new(stream, place, self.bounds), peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

#[cfg(test)]
mod tests;
