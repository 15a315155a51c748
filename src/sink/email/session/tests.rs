use tokio::net::{TcpListener, TcpSocket};

use super::*;

#[test]
fn what_a_server_offers_is_read_from_its_lines() {
    let reply = |lines: &[&str]| Reply { code: 250, lines: lines.iter().map(|line| (*line).to_owned()).collect() };
    let all = offers(&reply(&["STARTTLS", "size 1000", "AUTH LOGIN plain CRAM-MD5", "StartTLS", "8BITMIME"]));
    assert_eq!(all, Offers { starttls: true, plain: true, login: true, size: true, limit: Some(1000) });
    assert_eq!(offers(&reply(&["AUTH PLAIN STARTTLS SIZE 1"])), Offers::default(), "the first line is a name");
    let old = offers(&reply(&["mail", "AUTH=LOGIN", "SIZE 0", ""]));
    assert_eq!(old, Offers { login: true, size: true, ..Offers::default() });
}

#[test]
fn no_line_of_the_content_is_taken_for_the_last() {
    let content = b".\r\n..\r\na.\r\n.b\r\n";
    // Wherever the content is cut into pieces.
    for size in 1..=content.len() {
        let mut at_begin = true;
        let pieces: Vec<u8> = content.chunks(size).flat_map(|piece| stuffed(piece, &mut at_begin)).collect();
        assert_eq!(pieces, b"..\r\n...\r\na.\r\n..b\r\n", "pieces of {size}");
    }
}

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
