//! A real OpenTelemetry collector is sent the relay's spans: `make test-collector`, outside of CI, because it has to be compiled first.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "as in tests/it, of whose support little is used here"
)]
#![cfg(feature = "otlp")]

use std::path::Path;
use std::process::Stdio;

use support::{CLOCK, PATIENCE, bookings, broker, database, eventually, kafka_relay, outbox_relay, toml, unique};

#[path = "../it/support/mod.rs"]
mod support;

const CONFIG: &str = "\
receivers: { otlp: { protocols: { http: { endpoint: \"127.0.0.1:PORT\" } } } }
exporters: { debug: { verbosity: detailed } }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { traces: { receivers: [otlp], exporters: [debug] } }
";

// Guarantee: observe.spans-collector
#[tokio::test(flavor = "multi_thread")]
async fn a_real_collector_takes_the_spans_and_their_links() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let insert = "ALTER TABLE bookings ADD traceparent text; \
                  INSERT INTO bookings (traceparent) VALUES ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')";
    owner.batch_execute(insert).await.unwrap();
    let topic = unique("collected");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();

    let dir = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (config, log) = (dir.path().join("config.yaml"), dir.path().join("log"));
    std::fs::write(&config, CONFIG.replace("PORT", &port.to_string())).unwrap();
    let kit = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/collector/otelcol");
    let _collector = tokio::process::Command::new(kit)
        .arg("--config")
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .kill_on_drop(true)
        .spawn()
        .expect("scripts/collector-kit has compiled it");
    let said = || std::fs::read_to_string(&log).unwrap();
    eventually(PATIENCE, async || said().contains("Everything is ready")).await;

    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &kafka_relay("events", &topic, ""));
    let telemetry = format!("[telemetry]\notlp = \"http://127.0.0.1:{port}\"\nsample = 0\n[admin]");
    let text = text.replace("[admin]", &telemetry);
    let (_, out, _) = outbox_relay(&text, &["check"]).await;
    assert!(out.contains(&format!("http://127.0.0.1:{port} takes spans")), "{out}");
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--replica-id", "r1"]).await;
    assert_eq!(code, Some(0), "{log}");

    let parts = [
        "service.name: Str(outbox-relay)".to_owned(),
        "service.instance.id: Str(r1)".to_owned(),
        "Name           : turn events".to_owned(),
        format!("Name           : send {topic}"),
        format!("messaging.destination.name: Str({topic})"),
        "messaging.batch.message_count: Int(1)".to_owned(),
        "-> Trace ID: 0af7651916cd43dd8448eb211c80319c".to_owned(),
        "-> ID: b7ad6b7169203331".to_owned(),
    ];
    eventually(PATIENCE, async || parts.iter().all(|part| said().contains(part))).await;
}
