//! HTTP receivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use native_tls::{Identity, TlsAcceptor};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::outside::{lines, standing};
use crate::support::tls::{Authority, SHOWINGS, Showing};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

/// A receiver that accepts every request, and how many bytes of requests it could read.
async fn receiver(authority: &Authority, showing: Showing) -> (u16, Arc<AtomicUsize>) {
    let files = authority.issue(showing);
    let [certificate, key] = [files.certificate, files.key].map(|path| std::fs::read(path).unwrap());
    let identity = Identity::from_pkcs8(&certificate, &key).unwrap();
    let acceptor = tokio_native_tls::TlsAcceptor::from(TlsAcceptor::new(identity).unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, counter) = (acceptor.clone(), Arc::clone(&counter));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buffer = vec![0; 4096];
                while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
                    counter.fetch_add(bytes, Ordering::SeqCst);
                    if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, read)
}

fn relay(name: &str, port: u16) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
         [relay.sink.http]\nmethod = \"POST\"\nurl = \"https://127.0.0.1:{port}/\"\nbody = \"row\"\n"
    )
}

// Guarantee: secrets.tls
#[tokio::test(flavor = "multi_thread")]
async fn an_http_receiver_with_the_right_certificate_gets_the_rows_and_every_other_not_a_byte() {
    let (database, authority) = (database().await, Authority::new());
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    let mut receivers = Vec::new();
    let mut relays = String::new();
    for showing in SHOWINGS {
        let name = format!("{showing:?}").to_ascii_lowercase();
        let (port, read) = receiver(&authority, showing).await;
        relays.push_str(&relay(&name, port));
        receivers.push((name, showing, read));
    }
    let text = toml(&database, "relay", None, &relays);
    let environment = [("SSL_CERT_FILE", authority.file().display().to_string())];
    let trusting = Process::spawn_with(&text, &["run"], &environment);
    for (name, showing, read) in &receivers {
        if *showing == Showing::Right {
            eventually(PATIENCE * 2, async || read.load(Ordering::SeqCst) > 0).await;
            continue;
        }
        eventually(PATIENCE * 2, async || standing(&owner, name).await.is_some_and(|(.., error)| !error.is_null()))
            .await;
        let (state, _, _, error) = standing(&owner, name).await.unwrap();
        println!("{name}: {error}");
        assert_eq!(
            (state.as_str(), &error["class"], &error["code"]),
            ("backing_off", &"retry".into(), &"connect".into())
        );
        let reason = match showing {
            Showing::Right => unreachable!("it is trusted"),
            Showing::OtherHost => "mismatch",
            Showing::Expired => "expired",
            Showing::SelfSigned => "self-signed",
        };
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("certificate"), "{error}");
        assert_eq!(read.load(Ordering::SeqCst), 0, "{name}");
    }
    assert!(lines(&trusting).iter().any(|line| line["message"] == "row not published"));
}

// Guarantee: secrets.tls
#[tokio::test(flavor = "multi_thread")]
async fn an_http_receiver_of_an_unknown_authority_gets_not_a_byte() {
    let (database, authority) = (database().await, Authority::new());
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    let (port, read) = receiver(&authority, Showing::Right).await;
    let _process = Process::spawn(&toml(&database, "relay", None, &relay("h", port)), &["run"]);
    eventually(PATIENCE * 2, async || standing(&owner, "h").await.is_some_and(|(.., error)| !error.is_null())).await;
    let (_, _, _, error) = standing(&owner, "h").await.unwrap();
    assert!(error["message"].as_str().unwrap().contains("certificate"), "{error}");
    assert_eq!(read.load(Ordering::SeqCst), 0);
}
