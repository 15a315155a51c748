use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use secrecy::SecretString;
use tokio::net::TcpListener;

use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;
use crate::sink::{Failure, Mode, Published};

type Seen = Arc<Mutex<Vec<(Uri, HeaderMap, String)>>>;

fn config(base_url: String) -> Config {
    Config {
        provider: Provider::Twilio,
        base_url,
        account_sid: "AC1".into(),
        auth_token: Secret::Value(SecretString::from("token")),
        from: "+15550000000".into(),
        to: "{{ phone }}".into(),
        text: "Booking {{ id }} confirmed".into(),
        timeout: Duration::from_secs(2),
        rate_per_second: None,
        key_memory: None,
    }
}

async fn gateway(status: u16, body: String) -> (String, Seen) {
    let seen = Seen::default();
    let there = Arc::clone(&seen);
    let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap, form: String| {
        there.lock().expect("not poisoned").push((uri, headers, form));
        let answer = (StatusCode::from_u16(status).expect("a status"), body.clone());
        async move { answer }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, seen)
}

async fn send(config: &Config) -> Result<Published, Failure> {
    let sink = sink(config, "booking_sms").expect("compiles");
    let mut publication = sink.begin(Mode::default())?;
    let mut batch = Batch::new(sink.fields().len());
    let row = sink.fields().iter().map(|field| match field {
        crate::message::Field::Text(column) if column == "phone" => Some(&b"+15551234567"[..]),
        _ => Some(&b"7"[..]),
    });
    batch.push(Timestamp::from_pg_micros(1), "7", row);
    publication.push(&batch).await;
    Ok(publication.finish())
}

#[tokio::test]
async fn a_message_goes_out_as_twilio_documents_it() {
    let (url, seen) = gateway(201, r#"{"sid":"SM1"}"#.into()).await;
    let published = send(&config(format!("{url}/"))).await.expect("begins");
    assert_eq!(published, Published { acknowledged: 1, stopped: None, suspects: 1 });
    let seen = seen.lock().expect("not poisoned");
    let (uri, headers, form) = &seen[0];
    assert_eq!(uri, "/2010-04-01/Accounts/AC1/Messages.json");
    assert_eq!(headers["authorization"], "Basic QUMxOnRva2Vu");
    assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(headers["idempotency-key"], "booking_sms/7");
    assert_eq!(form, "To=%2B15551234567&From=%2B15550000000&Body=Booking%207%20confirmed");
}

// Guarantee: failures.twilio-codes
#[tokio::test]
async fn every_refusal_has_its_class() {
    use Class::{Fatal, Poison, Retry};
    for (status, code, class, ambiguous) in [
        (429, Some(20429), Retry, false),
        (429, None, Retry, false),
        (400, Some(21611), Retry, false),
        (401, Some(20003), Fatal, false),
        (403, Some(20003), Fatal, false),
        (403, None, Fatal, false),
        (404, Some(20404), Fatal, false),
        (404, None, Fatal, false),
        (400, Some(21212), Fatal, false),
        (400, Some(21606), Fatal, false),
        (400, Some(21660), Fatal, false),
        (400, Some(21211), Poison, false),
        (400, Some(21408), Poison, false),
        (403, Some(21610), Poison, false),
        (400, Some(21612), Poison, false),
        (400, Some(21614), Poison, false),
        (400, Some(21617), Poison, false),
        (400, Some(99999), Poison, false),
        (400, None, Poison, false),
        (500, Some(20500), Retry, true),
        (503, Some(20003), Retry, true),
    ] {
        let body = match code {
            Some(code) => format!(r#"{{"code":{code},"message":"The number +15551234567 is bad","status":{status}}}"#),
            None => "<html>+15551234567</html>".into(),
        };
        let (url, _) = gateway(status, body).await;
        let published = send(&config(url)).await.expect("begins");
        let failure = published.stopped.expect("refused");
        assert_eq!(
            (published.acknowledged, failure.class, failure.ambiguous),
            (0, class, ambiguous),
            "{status} {code:?}"
        );
        assert!(!format!("{failure:?}").contains("1234567"), "{failure:?}");
    }
}

#[tokio::test]
async fn the_secret_is_read_at_every_turn() {
    let (url, seen) = gateway(201, String::new()).await;
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"one\n").expect("writes");
    let config = Config { auth_token: Secret::File(file.path().to_owned()), ..config(url) };
    send(&config).await.expect("begins");
    std::fs::write(file.path(), "two\n").expect("writes");
    send(&config).await.expect("begins");
    let tokens: Vec<_> =
        seen.lock().expect("not poisoned").iter().map(|(_, h, _)| h["authorization"].clone()).collect();
    assert_eq!(tokens, ["Basic QUMxOm9uZQ==", "Basic QUMxOnR3bw=="]);
    std::fs::write(file.path(), "\n").expect("writes");
    assert_eq!(send(&config).await.expect_err("empty").class, Class::Fatal);
    file.close().expect("removed");
    let failure = send(&config).await.expect_err("gone");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Fatal, "secret_unreadable"));
    assert!(!failure.hint.is_empty());
}

#[test]
fn problems_name_the_presets_own_keys() {
    let config = Config { to: "{{ phone".into(), text: "{{ id | nonesuch }}".into(), ..config("api.example".into()) };
    let problems = sink(&config, "r").expect_err("nothing is right");
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["base_url", "to", "text"]);
}
