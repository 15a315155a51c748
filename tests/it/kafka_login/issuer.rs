//! An issuer of tokens that a broker verifies by its key.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use outbox_testkit::kafka::Listener;
use tempfile::TempDir;

use super::SECRET;

/// See the module.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) folder: TempDir,
    said: Mutex<Said>,
}

#[derive(Debug)]
pub(super) struct Said {
    pub(super) away: bool,
    lasts: u64,
    pub(super) audience: &'static str,
    pub(super) given: usize,
}

fn openssl(args: &[&str], dir: &Path, input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("openssl");
    command.args(args).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input).unwrap();
    let ended = process.wait_with_output().unwrap();
    assert!(ended.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    ended.stdout
}

impl Issuer {
    /// With a key of its own, and the file that brokers know it by.
    pub(super) fn new(lasts: u64) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        openssl(&["genrsa", "-out", "key.pem", "2048"], folder.path(), b"");
        let modulus = openssl(&["rsa", "-in", "key.pem", "-noout", "-modulus"], folder.path(), b"");
        let modulus = String::from_utf8(modulus).unwrap();
        let hex = modulus.trim().strip_prefix("Modulus=").unwrap();
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        let modulus = BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let key = format!(r#"{{"kty":"RSA","kid":"k","use":"sig","alg":"RS256","n":"{modulus}","e":"AQAB"}}"#);
        fs::write(folder.path().join("keys.json"), format!(r#"{{"keys":[{key}]}}"#)).unwrap();
        fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
        let said = Said { away: false, lasts, audience: "kafka", given: 0 };
        Arc::new(Self { folder, said: Mutex::new(said) })
    }

    /// A signed token (RFC 7519), for the broker's own validator.
    fn token(&self, audience: &str, lasts: u64) -> String {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let head = r#"{"alg":"RS256","kid":"k","typ":"JWT"}"#;
        let claims = format!(r#"{{"sub":"relay","scope":"w","aud":"{audience}","iat":{now},"exp":{}}}"#, now + lasts);
        let text = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(head), BASE64_URL_SAFE_NO_PAD.encode(claims));
        let signed = openssl(&["dgst", "-sha256", "-sign", "key.pem"], self.folder.path(), text.as_bytes());
        format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signed))
    }

    pub(super) fn see<T>(&self, read: impl FnOnce(&mut Said) -> T) -> T {
        read(&mut self.said.lock().unwrap())
    }

    pub(super) fn secret(&self, text: &str) {
        fs::write(self.folder.path().join("secret"), text).unwrap();
    }

    pub(super) fn listener(&self) -> Listener {
        let module = "org.apache.kafka.common.security.oauthbearer";
        let keys = format!("file://{}", self.folder.path().join("keys.json").display());
        let settings = vec![
            ("sasl.enabled.mechanisms", "OAUTHBEARER".to_owned()),
            ("oauthbearer.sasl.jaas.config", format!("{module}.OAuthBearerLoginModule required;")),
            ("oauthbearer.sasl.server.callback.handler.class", format!("{module}.OAuthBearerValidatorCallbackHandler")),
            ("oauthbearer.sasl.oauthbearer.jwks.endpoint.url", keys),
            ("oauthbearer.sasl.oauthbearer.expected.audience", "kafka".to_owned()),
            // A connection ends with the token that it was made by, unless it shows another one (KIP-368).
            ("oauthbearer.connections.max.reauth.ms", "3600000".to_owned()),
        ];
        Listener { name: "tokens".to_owned(), protocol: "SASL_PLAINTEXT", advertised: None, settings }
    }
}

pub(super) async fn answer(
    State(issuer): State<Arc<Issuer>>,
    headers: HeaderMap,
    form: String,
) -> (StatusCode, String) {
    assert_eq!(form, "grant_type=client_credentials&scope=w");
    let pair = BASE64_STANDARD.encode(format!("relay:{SECRET}"));
    if headers.get("authorization").is_none_or(|basic| *basic != format!("Basic {pair}")) {
        return (StatusCode::UNAUTHORIZED, r#"{"error":"invalid_client"}"#.to_owned());
    }
    let (away, lasts, audience) = issuer.see(|said| (said.away, said.lasts, said.audience));
    if away {
        return (StatusCode::SERVICE_UNAVAILABLE, String::new());
    }
    issuer.see(|said| said.given += 1);
    let token = issuer.token(audience, lasts);
    (StatusCode::OK, format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":{lasts}}}"#))
}
