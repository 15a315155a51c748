//! A connection to a host, whichever of its addresses answers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;

/// Before the next of a host's addresses is tried beside the one before.
const HEAD_START: Duration = Duration::from_millis(250);

/// To this host.
pub(super) async fn to(host: &str, port: u16) -> io::Result<TcpStream> {
    connected(tokio::net::lookup_host((host, port)).await?.collect()).await
}

/// A connection to the first address that takes one. Each has a head start of [`HEAD_START`] before the next is tried beside it, as in
/// RFC 8305: an address that swallows what is sent to it must not cost all of the time.
async fn connected(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let (mut addresses, mut attempts) = (addresses.into_iter(), FuturesUnordered::new());
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        if let Some(address) = addresses.next() {
            attempts.push(TcpStream::connect(address));
        } else if attempts.is_empty() {
            return Err(last);
        }
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            },
            () = tokio::time::sleep(HEAD_START), if addresses.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// An address at which connections neither open nor are refused, as behind a firewall: its backlog is full.
    async fn silent() -> (SocketAddr, Vec<TcpStream>, TcpListener) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let listener = socket.listen(1).expect("listens");
        let address = listener.local_addr().expect("an address");
        let mut filling = Vec::new();
        while let Ok(open) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
            filling.push(open.expect("a connection"));
        }
        (address, filling, listener)
    }

    // Guarantee: failures.smtp-addresses
    #[tokio::test]
    async fn an_address_that_is_silent_or_refuses_does_not_hide_the_next_one() {
        let (silent, _filling, _full) = silent().await;
        let sound = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let good = sound.local_addr().expect("an address");
        let refusing = TcpListener::bind("127.0.0.1:0").await.expect("listens").local_addr().expect("an address");
        for addresses in [vec![silent, good], vec![refusing, good], vec![silent, refusing, good], vec![good, silent]] {
            let open = tokio::time::timeout(Duration::from_secs(5), connected(addresses)).await.expect("in time");
            assert_eq!(open.expect("a connection").peer_addr().expect("an address"), good);
        }
        let none = connected(vec![refusing]).await.expect_err("refused");
        assert_eq!(none.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(connected(Vec::new()).await.expect_err("no address").kind(), std::io::ErrorKind::NotFound);
    }
}
