//! Dialogues that are almost SMTP.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::garbled::Garbled;

/// As long as a client is silent before it gets what comes next.
const PAUSE: Duration = Duration::from_millis(20);

/// The answers in the bytes: each ends with a line without a hyphen behind its number.
fn answers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut answers = vec![Vec::new()];
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        answers.last_mut().expect("one").extend_from_slice(line);
        if line.get(3) != Some(&b'-') {
            answers.push(Vec::new());
        }
    }
    answers
}

/// Gives an answer to each line, and to a content as a whole; and the next one to a client that still waits for more.
async fn serve(mut stream: TcpStream, script: Vec<Vec<u8>>) {
    let mut seen = Vec::new();
    for answer in script {
        // A client that is gone is one of the ends.
        if stream.write_all(&answer).await.is_err() {
            return;
        }
        seen.clear();
        let end: &[u8] = if answer.starts_with(b"354") { b"\r\n.\r\n" } else { b"\r\n" };
        while !seen.ends_with(end) {
            match tokio::time::timeout(PAUSE, stream.read_buf(&mut seen)).await {
                Ok(Ok(1..)) => {}
                Ok(Ok(0) | Err(_)) => return,
                Err(_) => break,
            }
        }
    }
}

#[tokio::test]
async fn garbled_dialogues_hand_over_nothing_unconfirmed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = listener.local_addr().expect("bound").port();
    let server = Server {
        host: "127.0.0.1".into(),
        port,
        security: Security::None,
        credentials: None,
        ca_file: None,
        hello_name: None,
    };
    let mail = Mail {
        id: "1".into(),
        from: "a@example.com".into(),
        to: "b@example.com".into(),
        message_id: "<1@example.com>".into(),
        content: b"Subject: x\r\n\r\nx\r\n".to_vec(),
    };
    let (mut taken, mut refused) = (0, 0);
    for bytes in Garbled::new("smtp") {
        let mut step = Step::default();
        let dialogue = async {
            let mut session = server.open(&mut step).await?;
            session.send(&mail, &mut step).await
        };
        let serving = async {
            let (stream, _) = listener.accept().await.expect("a client");
            serve(stream, answers(&bytes)).await;
        };
        let limit = Duration::from_secs(10);
        let ended = tokio::time::timeout(limit, async { tokio::join!(dialogue, serving).0 }).await;
        match ended.expect("it ends with the connection") {
            Ok(reply) => {
                taken += 1;
                let confirmed = answers(&bytes).iter().filter(|answer| answer.starts_with(b"25")).count();
                assert!(step == Step::Dot && reply.code == 250 && confirmed >= 4, "{step:?} {reply:?}");
            }
            Err(_) => refused += 1,
        }
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
}
