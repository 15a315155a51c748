//! Each message of PostgreSQL while a session is opened, spoiled on purpose, and servers that only pretend to be one: the session is
//! refused in time, with an error; nothing panics, nothing waits indefinitely, no flood is read, and no server is trusted that did not
//! prove that it knows the password.

use std::time::Duration;

use futures_util::StreamExt as _;
use outbox_relay::database::{Limits, Sessions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::relays::parse;
use crate::support::start_proxy::{FLOOD, Fault, StartProxy};
use crate::support::{Database, database};

const LIMITS: Limits = Limits { statement: Duration::from_secs(5), lock_kill: Duration::from_secs(2) };
/// The two limits of opening (connection and sign-in, then settings), and a busy machine.
const ENDS: Duration = Duration::from_secs(15);

/// What comes of opening a session through this port.
async fn open(database: &Database, port: u16) -> Result<(), String> {
    let real = format!(":{}", database.postgres.port());
    open_at(&(database.url("relay").replace(&real, &format!(":{port}")) + "&connect_timeout=1")).await
}

async fn open_at(url: &str) -> Result<(), String> {
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.t\"\n[relay.sink.stdout]\n";
    let config = parse(&format!("[postgres]\nurl = \"{url}\"\n{relay}")).postgres;
    // A task of its own, so that a panic is seen as one.
    let opening =
        tokio::spawn(async move { Sessions::new(config, LIMITS, "outbox-relay/test".to_owned()).open().await });
    let opened = tokio::time::timeout(ENDS, opening).await.expect("an end");
    opened.expect("no panic").map(drop).map_err(|error| error.to_string())
}

/// Whether the driver takes this message for another one and loses nothing by it: what follows a statement that is closed, and the
/// confirmation of a setting, which is read back afterwards.
fn is_harmless(kind: u8, fault: Fault) -> bool {
    matches!((kind, fault), (b'3', Fault::Type(_)) | (b'C' | b'S', Fault::Type(b'T' | b'D')))
}

/// All faults of all messages; of a run of equal ones the first and the last.
fn cases(types: &[u8]) -> Vec<(usize, Fault)> {
    let signed_in = types.iter().position(|kind| *kind == b'Z').unwrap();
    let faults = [Fault::Cut, Fault::Silent, Fault::Shorter, Fault::Longer, Fault::Empty, Fault::Negative];
    let others = b"RSKZETDCX".map(Fault::Type);
    let mut cases = Vec::new();
    for (at, kind) in types.iter().enumerate() {
        let is_kind = |other: Option<&u8>| other == Some(kind);
        if is_kind(at.checked_sub(1).and_then(|before| types.get(before)))
            && is_kind(types.get(at + 1))
            && *kind != b'R'
        {
            continue;
        }
        cases.extend(faults.into_iter().map(|fault| (at, fault)));
        cases.extend(others.into_iter().filter(|fault| *fault != Fault::Type(*kind)).map(|fault| (at, fault)));
        if at <= signed_in {
            cases.push((at, Fault::Oversized));
        }
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn spoiled_messages_of_start_are_errors() {
    let database = &database().await;
    let proxy = StartProxy::start(database.postgres.port(), None).await;
    open(database, proxy.port).await.unwrap();
    let mut types = proxy.types();
    // The answer to a statement that is closed is not waited for: at the end it may have come or not.
    while types.ends_with(b"3") || types.ends_with(b"3Z") {
        types.truncate(types.iter().rposition(|kind| *kind == b'3').unwrap());
    }
    assert!(types.starts_with(b"RRRRS") && types.contains(&b'K'), "the sign-in by SCRAM: {types:?}");
    let cases = cases(&types);
    assert!(cases.len() > 500, "{}", cases.len());
    let tried = futures_util::stream::iter(cases).map(async |(at, fault)| {
        let proxy = StartProxy::start(database.postgres.port(), Some((at, fault))).await;
        let opened = open(database, proxy.port).await;
        let (spoiled, taken) = (proxy.types().get(at).copied(), proxy.taken());
        assert_eq!(spoiled, Some(types[at]), "message {at} is always the same");
        let is_right = if is_harmless(types[at], fault) { fault != Fault::Oversized } else { opened.is_err() };
        let what = format!("message {at}, {}: {fault:?}: {opened:?}, {taken} bytes taken", char::from(types[at]));
        (is_right && taken < FLOOD / 4, what)
    });
    let tried: Vec<_> = tried.buffer_unordered(32).collect().await;
    let wrong: Vec<_> = tried.iter().filter(|(is_right, _)| !is_right).map(|(_, what)| what).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), tried.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_behind_the_sign_in_is_told_from_silence_before_it() {
    let database = &database().await;
    let proxy = StartProxy::start(database.postgres.port(), None).await;
    open(database, proxy.port).await.unwrap();
    let signed_in = proxy.types().iter().position(|kind| *kind == b'Z').unwrap();
    let cases = [(signed_in, "PostgreSQL did not answer"), (signed_in + 1, "let a session in and did not answer")];
    for (at, said) in cases {
        let proxy = StartProxy::start(database.postgres.port(), Some((at, Fault::Silent))).await;
        let error = open(database, proxy.port).await.unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

/// A server that knows no password: to each message of the client it has one answer, and then it is silent. What the client has
/// sent is given back.
async fn pretend(answers: Vec<Vec<u8>>) -> (u16, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let (mut heard, mut buffer) = (Vec::new(), [0; 4096]);
        let mut answers = answers.into_iter();
        while let Ok(count @ 1..) = client.read(&mut buffer).await {
            heard.push(buffer[..count].to_vec());
            // The first nonce of the exchange has to begin with the client's.
            let nonce = String::from_utf8_lossy(&buffer[..count]).split_once("r=").map(|(_, nonce)| nonce.to_owned());
            let answer = answers.next().unwrap_or_default();
            let nonce = nonce.unwrap_or_default().into_bytes();
            let at = answer.windows(5).position(|bytes| bytes == b"NONCE");
            let answer = match at {
                Some(at) => message(b'R', &[&answer[5..at], &nonce, &answer[at + 5..]].concat()),
                None => answer,
            };
            if client.write_all(&answer).await.is_err() {
                break;
            }
        }
        heard
    });
    (port, server)
}

/// A message of this type.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// A request of this number for a proof of identity.
fn asks(number: u32, body: &[u8]) -> Vec<u8> {
    message(b'R', &[&number.to_be_bytes(), body].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_proves_nothing_gets_no_session() {
    let scram = || asks(10, b"SCRAM-SHA-256\0\0");
    let proof = |text: &str| asks(11, text.as_bytes());
    let error = |text: &[u8]| message(b'E', text);
    let endless = [message(b'N', b"SNOTICE\0C00000\0Mm\0\0").repeat(100_000), asks(0, b"")].concat();
    let cases = [
        ("kerberos", vec![asks(2, b"")]),
        ("scm", vec![asks(6, b"")]),
        ("gss", vec![asks(7, b"")]),
        ("gss goes on", vec![asks(8, b"x")]),
        ("sspi", vec![asks(9, b"")]),
        ("an unknown method", vec![asks(77, b"")]),
        ("md5 without its salt", vec![asks(5, b"\0\0")]),
        ("the middle of SCRAM", vec![proof("r=NONCE,s=AAAA,i=1")]),
        ("the end of SCRAM", vec![asks(12, b"v=AAAA")]),
        ("no mechanism", vec![asks(10, b"\0")]),
        ("no end of mechanisms", vec![asks(10, b"SCRAM-SHA-256")]),
        ("an unknown mechanism", vec![asks(10, b"OAUTHBEARER\0\0")]),
        ("SCRAM, then trust", vec![scram(), asks(0, b"")]),
        ("SCRAM, then its end", vec![scram(), asks(12, b"v=AAAA")]),
        ("SCRAM, then the password itself", vec![scram(), asks(3, b"")]),
        ("another nonce", vec![scram(), proof("r=other,s=AAAA,i=1")]),
        ("no salt", vec![scram(), proof("r=NONCE,s=,i=1")]),
        ("a salt that is none", vec![scram(), proof("r=NONCE,s=!!,i=1")]),
        ("an hour of work", vec![scram(), proof("r=NONCE,s=AAAA,i=4294967295")]),
        ("a negative amount of work", vec![scram(), proof("r=NONCE,s=AAAA,i=-1")]),
        ("nothing of an exchange", vec![scram(), asks(11, b"")]),
        ("bytes that are no text", vec![scram(), asks(11, b"\xff\xfe")]),
        ("trust after the first half", vec![scram(), proof("r=NONCE,s=AAAA,i=1"), asks(0, b"")]),
        ("a wrong signature", vec![scram(), proof("r=NONCE,s=AAAA,i=1"), asks(12, b"v=AAAA")]),
        ("an error instead of a signature", vec![scram(), proof("r=NONCE,s=AAAA,i=1"), asks(12, b"e=other-error")]),
        ("a refusal without fields", vec![error(b"\0")]),
        ("a refusal without an end", vec![error(b"SFATAL")]),
        ("a refusal that is no text", vec![error(b"S\xff\0C\xfe\0M\xfd\0\0")]),
        ("a refusal of an unknown severity", vec![error(b"SX\0VX\0C0\0Mm\0\0")]),
        ("another protocol", vec![message(b'v', b"\0\x03\0\x02\0\0\0\0")]),
        ("a notice first", vec![[message(b'N', b"SNOTICE\0C00000\0Mm\0\0"), asks(0, b"")].concat()]),
        ("notices without end", vec![[asks(0, b""), endless].concat()]),
        ("an answer of HTTP", vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]),
        ("ready at once", vec![message(b'Z', b"I")]),
        ("trust, and silence", vec![asks(0, b"")]),
        (
            "trust, and answers to nothing",
            vec![[asks(0, b""), message(b'Z', b"I"), message(b'Z', b"I").repeat(9)].concat()],
        ),
    ];
    let mut wrong = Vec::new();
    let tried = futures_util::stream::iter(cases).map(async |(name, answers)| {
        let (port, server) = pretend(answers).await;
        let url = format!("postgresql://relay:hunter2@127.0.0.1:{port}/app?sslmode=disable&connect_timeout=1");
        let opened = open_at(&url).await;
        (name, opened, server.await.unwrap())
    });
    for (name, opened, heard) in tried.buffer_unordered(16).collect::<Vec<_>>().await {
        let has_password = heard.iter().any(|bytes| bytes.windows(7).any(|bytes| bytes == b"hunter2"));
        let printed = opened.clone().err().unwrap_or_default();
        if printed.is_empty() || printed.len() > 600 || printed.chars().any(char::is_control) || has_password {
            wrong.push((name, opened, has_password));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_tls_sends_nothing_in_clear_text() {
    let packet = b"\x16\x03\x03\0\x02\x02\x28".to_vec();
    let cases: [(&str, Vec<u8>); 7] = [
        ("no", b"N".to_vec()),
        ("an error of an old server", message(b'E', b"SFATAL\0C08P01\0Munsupported\0\0")),
        ("another letter", b"X".to_vec()),
        ("yes, and clear text", [b"S".to_vec(), asks(0, b""), message(b'Z', b"I")].concat()),
        ("yes, and an alert", [b"S".to_vec(), packet].concat()),
        ("yes, and silence", b"S".to_vec()),
        ("silence", Vec::new()),
    ];
    for mode in ["require", "verify-full"] {
        for (name, answer) in cases.clone() {
            let (port, server) = pretend(vec![answer]).await;
            let url = format!("postgresql://relay:hunter2@127.0.0.1:{port}/app?sslmode={mode}&connect_timeout=1");
            open_at(&url).await.expect_err(name);
            let heard = server.await.unwrap().concat();
            let has = |word: &[u8]| heard.windows(word.len()).any(|bytes| bytes == word);
            assert!(!has(b"hunter2") && !has(b"relay") && !has(b"app"), "{mode}, {name}: {heard:?}");
        }
    }
}
