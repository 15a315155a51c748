//! Access that cannot work: the configuration is refused.

use crate::support::outbox_relay;

#[tokio::test(flavor = "multi_thread")]
async fn access_that_cannot_work_is_refused_by_name() {
    let cases = [
        ("cert_file = \"/c\"", "a certificate without its key"),
        ("key_file = \"/k\"", "a key without its certificate"),
        (
            "headers = { authorization = \"x\" }\noauth2 = { token_url = \"https://i/t\", client_id = \"c\", client_secret_file = \"/s\" }",
            "given twice",
        ),
        ("oauth2 = { token_url = \"http://i/t\", client_id = \"c\", client_secret_file = \"/s\" }", "in clear"),
        (
            "oauth2 = { token_url = \"https://u:p@i/t\", client_id = \"c\", client_secret_file = \"/s\" }",
            "credentials in a URL",
        ),
        ("oauth2 = { token_url = \"https://i/t\", client_id = \"c\" }", "client_secret_file"),
        (
            "oauth2 = { token_url = \"https://i/t?secret=x\", client_id = \"c\", client_secret_file = \"/s\" }",
            "a query or a fragment",
        ),
    ];
    for (keys, word) in cases {
        let text = format!(
            "[postgres]\nurl = \"postgresql://u@h/d?sslmode=disable\"\n[[relay]]\nname = \"h\"\n[relay.source.stream]\ntable = \"public.b\"\n\
             [relay.sink.http]\nurl = \"https://r/\"\n{keys}\n"
        );
        let (code, out, log) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
        assert!(code == Some(2) && log.contains(word), "{keys}: {code:?} {out}{log}");
        assert!(!log.contains("u:p@"), "{log}");
    }
}
