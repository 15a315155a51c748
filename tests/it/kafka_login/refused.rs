//! Log-ins that cannot work: the configuration is refused.

use std::collections::BTreeMap;

use crate::support::{kafka_relay, outbox_relay};

#[tokio::test(flavor = "multi_thread")]
async fn log_ins_that_cannot_work_are_refused_by_name() {
    let oauth2 = "[kafka.oauth2]\ntoken_url = \"https://i/t\"\nclient_id = \"c\"\nclient_secret_file = \"/s\"\n";
    let cases: BTreeMap<&str, (String, &str)> = [
        ("mechanism alone", ("[kafka.properties]\nsasl.mechanism = \"OAUTHBEARER\"\n".to_owned(), "needs tokens")),
        (
            "another mechanism",
            (format!("[kafka.properties]\nsasl.mechanism = \"PLAIN\"\n{oauth2}"), "counts for OAUTHBEARER only"),
        ),
        (
            "librdkafka's own",
            (format!("[kafka.properties]\nsasl.oauthbearer.config = \"principal=x\"\n{oauth2}"), "not by librdkafka"),
        ),
        ("no log-in", (format!("[kafka.properties]\nsecurity.protocol = \"ssl\"\n{oauth2}"), "no token is sent")),
        (
            "a password, too",
            (format!("[kafka.properties]\nsasl.password = \"hunter2\"\n{oauth2}"), "counts for nothing"),
        ),
        ("in clear", (oauth2.replace("https", "http"), "in clear")),
        ("no secret", (oauth2.replace("client_secret_file = \"/s\"\n", ""), "client_secret_file")),
    ]
    .into();
    for (name, (section, word)) in cases {
        let text = format!(
            "[postgres]\nurl = \"postgresql://u@h/d?sslmode=disable\"\n[kafka]\nbootstrap_servers = \"b:9092\"\n{section}{}",
            kafka_relay("k", "t", "")
        );
        let (code, out, log) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
        assert!(code == Some(2) && log.contains(word), "{name}: {code:?} {out}{log}");
        assert!(!log.contains("hunter2"), "{log}");
    }
    let text = format!(
        "[postgres]\nurl = \"postgresql://u@h/d?sslmode=disable\"\n[kafka]\nbootstrap_servers = \"b:9092\"\n{oauth2}{}",
        kafka_relay("k", "t", "")
    );
    let (code, out, log) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.contains("\"security.protocol\" = \"sasl_ssl\"") && out.contains("[kafka.oauth2]"), "{out}");
}
