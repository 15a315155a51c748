//! ACLs of a real broker, written as its protocol has them: the client library's binding has no call for them.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TOPIC: u8 = 2;
const LITERAL: u8 = 3;
const DENY: u8 = 2;

/// What may be denied: the protocol's number of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    All = 2,
    Read = 3,
    Write = 4,
}

/// Denies this to all that do not sign in.
pub async fn deny(servers: &str, topic: &str, operation: Operation) {
    // CreateAcls, version 1.
    ask(servers, 30, topic, operation).await;
}

/// Takes that back.
pub async fn allow(servers: &str, topic: &str, operation: Operation) {
    // DeleteAcls, version 1, whose filter has the same form.
    ask(servers, 31, topic, operation).await;
}

async fn ask(servers: &str, api: u8, topic: &str, operation: Operation) {
    let mut request = vec![0, api, 0, 1, 0, 0, 0, 7, 0xff, 0xff];
    request.extend([0, 0, 0, 1, TOPIC]);
    string(&mut request, topic);
    request.push(LITERAL);
    string(&mut request, "User:ANONYMOUS");
    string(&mut request, "*");
    request.extend([operation as u8, DENY]);
    let mut broker = TcpStream::connect(servers).await.unwrap();
    broker.write_u32(u32::try_from(request.len()).unwrap()).await.unwrap();
    broker.write_all(&request).await.unwrap();
    let mut answer = vec![0; broker.read_u32().await.unwrap() as usize];
    broker.read_exact(&mut answer).await.unwrap();
    // The correlation id, a time, one result, no error.
    assert_eq!(answer[8..14], [0, 0, 0, 1, 0, 0], "{answer:?}");
}

fn string(request: &mut Vec<u8>, text: &str) {
    request.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    request.extend(text.as_bytes());
}
