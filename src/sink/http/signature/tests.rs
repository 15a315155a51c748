use std::io::Write as _;

use reqwest::header::HeaderMap;

use super::*;

/// The example that the specification's own libraries are tested with.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn file(text: &str) -> tempfile::TempPath {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file.into_temp_path()
}

fn keys(texts: &[&str]) -> Result<Keys, String> {
    let files: Vec<_> = texts.iter().map(|text| file(text)).collect();
    Keys::read(&files.iter().map(|file| file.to_path_buf()).collect::<Vec<_>>())
}

// Guarantee: secrets.webhook-signatures
#[test]
fn the_published_example_is_signed_as_published() {
    let signed = |text: &str| {
        keys(&[text]).expect("valid").sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b"{\"test\": 2432232314}")
    };
    assert_eq!(signed(SECRET), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_eq!(signed(&format!("{SECRET}\n")), signed(SECRET), "a line break at the end does not count");
}

#[test]
fn the_specifications_own_library_accepts_each_of_two_secrets_and_no_third() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let body = b"{\"id\":1}";
    let signature = keys(&[SECRET, OTHER]).expect("valid").sign("relay/1", &now.to_string(), body);
    assert_eq!(signature.split(' ').count(), 2);
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "relay/1".parse().expect("a value"));
    headers.insert("webhook-timestamp", now.to_string().parse().expect("a value"));
    headers.insert("webhook-signature", signature.parse().expect("a value"));
    let verifies = |secret: &str, body: &[u8]| {
        standardwebhooks::Webhook::new(secret).expect("a secret").verify(body, &headers).is_ok()
    };
    assert!(verifies(SECRET, body) && verifies(OTHER, body));
    assert!(!verifies("whsec_IB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE=", body) && !verifies(SECRET, b"{\"id\":2}"));
}

#[test]
fn what_is_no_secret_is_refused_and_not_quoted() {
    for (text, wrong) in [
        ("", "does not begin with whsec_"),
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "does not begin with whsec_"),
        ("whsec_hunter2 hunter2", "holds no base64 behind whsec_"),
        ("whsec_aHVudGVyMg==", "must hold 24 to 64 bytes"),
        (&format!("whsec_{}", "hunter2h".repeat(11)), "must hold 24 to 64 bytes"),
    ] {
        let error = keys(&[SECRET, text]).expect_err(text);
        assert!(error.contains(wrong) && !error.contains("hunter2"), "{error}");
    }
    let error = Keys::read(&["/no/such/file".into()]).expect_err("no file");
    assert!(error.starts_with("/no/such/file cannot be read: "), "{error}");
    assert_eq!(format!("{:?}", keys(&[SECRET]).expect("valid")), "Keys(1)");
}

#[test]
fn no_full_stop_stands_in_an_id() {
    assert_eq!(id("relay/1"), "relay/1");
    assert_eq!(id("relay.v2/a.1700000000"), "relay%2Ev2/a%2E1700000000");
}
