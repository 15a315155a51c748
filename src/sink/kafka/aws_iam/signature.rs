//! The token: a URL, signed by Signature Version 4 in its query, as base64.
//!
//! Parameters, their order and what is signed are those of the signers that AWS publishes for MSK
//! (<https://github.com/aws/aws-msk-iam-sasl-signer-python>): the hash of an empty body, the header `host` alone, and `User-Agent`
//! after the signature. See docs/adr/0043-aws-msk-iam.md.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use percent_encoding::utf8_percent_encode;
use reqsign_aws_v4::constants::AWS_QUERY_ENCODE_SET;
use reqsign_aws_v4::{Credential, EMPTY_STRING_SHA256};
use reqsign_core::hash::{hex_hmac_sha256, hex_sha256, hmac_sha256};

use super::LIFE;

const SERVICE: &str = "kafka-cluster";
const ACTION: (&str, &str) = ("Action", "kafka-cluster:Connect");
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// What MSK shows in its logs.
const AGENT: &str = concat!("outbox-relay/", env!("CARGO_PKG_VERSION"));

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) host: &'a str,
    pub(super) service: &'a str,
    pub(super) region: &'a str,
}

/// The token for the clusters of a region, signed at an instant.
pub(super) fn token(region: &str, credential: &Credential, at: SystemTime) -> String {
    let host = format!("kafka.{region}.amazonaws.com");
    let scope = Scope { host: &host, service: SERVICE, region };
    let query = presigned(scope, credential, &[ACTION], LIFE, at);
    BASE64_URL_SAFE_NO_PAD.encode(format!("https://{host}/?{query}&User-Agent={}", encoded(AGENT)))
}

/// The query of a GET of `/` with these parameters, which may be sent for so long.
pub(super) fn presigned(
    scope: Scope<'_>,
    credential: &Credential,
    parameters: &[(&str, &str)],
    lasts: Duration,
    at: SystemTime,
) -> String {
    let stamp = DateTime::<Utc>::from(at).format("%Y%m%dT%H%M%SZ").to_string();
    let day = &stamp[..8];
    let parts = [day, scope.region, scope.service, "aws4_request"];
    let whose = format!("{}/{}", credential.access_key_id, parts.join("/"));
    let seconds = lasts.as_secs().to_string();
    let mut all = parameters.to_vec();
    all.extend([
        ("X-Amz-Algorithm", ALGORITHM),
        ("X-Amz-Credential", &whose),
        ("X-Amz-Date", &stamp),
        ("X-Amz-Expires", &seconds),
        ("X-Amz-SignedHeaders", "host"),
    ]);
    all.extend(credential.session_token.iter().map(|token| ("X-Amz-Security-Token", token.as_str())));
    let mut pairs: Vec<_> = all.iter().map(|(name, value)| (encoded(name), encoded(value))).collect();
    let query = joined(&pairs);
    pairs.sort();
    let request = format!("GET\n/\n{}\nhost:{}\n\nhost\n{EMPTY_STRING_SHA256}", joined(&pairs), scope.host);
    let text = format!("{ALGORITHM}\n{stamp}\n{}\n{}", parts.join("/"), hex_sha256(request.as_bytes()));
    let secret = format!("AWS4{}", credential.secret_access_key).into_bytes();
    let key = parts.iter().fold(secret, |key, part| hmac_sha256(&key, part.as_bytes()));
    format!("{query}&X-Amz-Signature={}", hex_hmac_sha256(&key, text.as_bytes()))
}

fn joined(pairs: &[(String, String)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &AWS_QUERY_ENCODE_SET).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters, the session's token, the signature.
    type Vector<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, &'a str);

    /// 2015-08-30T12:36:00Z, of AWS's published vectors.
    const AT: Duration = Duration::from_secs(1_440_938_160);

    fn credential(session_token: Option<&str>) -> Credential {
        Credential {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: session_token.map(str::to_owned),
            expires_in: None,
        }
    }

    // Guarantee: secrets.aws-iam
    #[test]
    fn signatures_are_those_of_the_published_vectors() {
        // The files query-signed-request.txt of awslabs/aws-c-auth, tests/aws-signing-test-suite/v4: get-vanilla-query,
        // get-vanilla-query-order-key-case, get-vanilla-query-unreserved, get-vanilla-utf8-query, get-vanilla-with-session-token.
        let unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let session = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
        let vectors: [Vector<'_>; 5] = [
            (&[], None, "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"),
            (
                &[("Param2", "value2"), ("Param1", "value1")],
                None,
                "86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5",
            ),
            (&[(unreserved, unreserved)], None, "8e76a88a7433637b12778d5592799b29ad21ecd6cf6325051c21d86f0acda2bf"),
            (&[("ሴ", "bar")], None, "0bdd809b1519ac4f0c1dc3540e2cc46bd0c7f778eda408b2ebf3b913d21ff600"),
            (&[], Some(session), "7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c"),
        ];
        let scope = Scope { host: "example.amazonaws.com", service: "service", region: "us-east-1" };
        for (parameters, session, signature) in vectors {
            let at = SystemTime::UNIX_EPOCH + AT;
            let query = presigned(scope, &credential(session), parameters, Duration::from_secs(3600), at);
            assert!(query.ends_with(&format!("&X-Amz-Signature={signature}")), "{query}");
        }
    }

    // Guarantee: secrets.aws-iam
    #[test]
    fn tokens_are_those_of_the_signer_that_aws_publishes() {
        // What aws-msk-iam-sasl-signer-python 1.0.2 (botocore 1.44.8) gives for these credentials at this instant, decoded:
        // generate_auth_token_from_credentials_provider, with botocore.auth.get_current_datetime replaced.
        let signed = "https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Feu-central-1%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20150830T123600Z\
             &X-Amz-Expires=900&X-Amz-SignedHeaders=host";
        let session = "AQoDYXdzEXAMPLE+TOKEN/value==";
        let more = "&X-Amz-Security-Token=AQoDYXdzEXAMPLE%2BTOKEN%2Fvalue%3D%3D";
        for (session, more, signature) in [
            (None, "", "53689816b3b2cdde51ca9132a78772b80ff54898d21f7932753496df2eea9d8c"),
            (Some(session), more, "9a26c3fd39491a69a32a4c5a1135799ddc0f5e72e3d59c1b9e2d99e2f173146c"),
        ] {
            let token = token("eu-central-1", &credential(session), SystemTime::UNIX_EPOCH + AT);
            let url = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(&token).expect("base64")).expect("a URL");
            // The last parameter names the program.
            let agent = format!("&User-Agent=outbox-relay%2F{}", env!("CARGO_PKG_VERSION"));
            assert_eq!(url, format!("{signed}{more}&X-Amz-Signature={signature}{agent}"));
        }
    }
}
