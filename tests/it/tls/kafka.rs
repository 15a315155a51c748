//! Kafka.

use std::path::Path;

use futures_util::future::join_all;
use outbox_testkit::kafka::{BrokerOptions, Listener, RealBroker};
use tokio_postgres::Client;

use crate::support::outside::{finding, halted, json, line, standing};
use crate::support::tls::{Authority, SHOWINGS, Showing};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, ids, kafka_relay, outbox_relay, toml};

fn listener(authority: &Authority, showing: Showing) -> Listener {
    let name = format!("{showing:?}").to_ascii_lowercase();
    let store = authority.file().with_file_name(format!("{name}.store"));
    std::fs::write(&store, authority.issue(showing).both()).unwrap();
    let settings =
        vec![("ssl.keystore.type", "PEM".to_owned()), ("ssl.keystore.location", store.display().to_string())];
    Listener { name, protocol: "SSL", advertised: None, settings }
}

fn properties(ca_file: Option<&Path>) -> String {
    let location = ca_file.map_or(String::new(), |path| format!("\"ssl.ca.location\" = \"{}\"\n", path.display()));
    format!("[kafka.properties]\n\"security.protocol\" = \"ssl\"\n{location}")
}

// Guarantee: secrets.tls
#[tokio::test(flavor = "multi_thread")]
async fn kafka_with_the_right_certificate_gets_the_rows_and_every_other_none() {
    let authority = Authority::new();
    let listeners = SHOWINGS.map(|showing| listener(&authority, showing)).into();
    let options = BrokerOptions { listeners, ..BrokerOptions::default() };
    let (database, broker) = (database().await, RealBroker::start_with(&options).await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    broker.create_topic("t", 1, &[]).await.unwrap();
    let toml_for = |name: &str, servers: &str, properties: &str| {
        let relay = kafka_relay(name, "t", "");
        toml(&database, "relay", Some(servers), &format!("{properties}{relay}"))
    };
    let address = |showing: Showing| broker.listener(&format!("{showing:?}").to_ascii_lowercase()).unwrap();
    let trusting = properties(Some(&authority.file()));
    let plain = broker.bootstrap_servers();
    let unknown = properties(None);
    let cases = [
        ("other_host", address(Showing::OtherHost), &trusting),
        ("expired", address(Showing::Expired), &trusting),
        ("self_signed", address(Showing::SelfSigned), &trusting),
        ("unknown", address(Showing::Right), &unknown),
        ("no_tls", plain.clone(), &trusting),
    ];
    join_all(cases.map(|(name, servers, properties)| refuses(&owner, name, toml_for(name, &servers, properties))))
        .await;
    assert_eq!(ids(&plain, "t").await, Vec::<String>::new());
    owner.batch_execute("DELETE FROM outbox.cursor").await.unwrap(); // the next relay is no renamed one
    let accepted = toml_for("right", &address(Showing::Right), &trusting);
    let (code, _, log) = outbox_relay(&accepted, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(ids(&plain, "t").await, ["1"]);
    let (code, out, _) = outbox_relay(&accepted, &["check"]).await;
    assert_eq!(code, Some(0), "{out}");
    broker.stop().await.unwrap();
}

// Guarantee: secrets.kafka-certificate
#[tokio::test(flavor = "multi_thread")]
async fn broker_that_misses_the_clients_certificate_is_named_and_gets_the_row_once_it_is_there() {
    let authority = Authority::new();
    let mut mutual = listener(&authority, Showing::Right);
    mutual.settings.extend([
        ("ssl.client.auth", "required".to_owned()),
        ("ssl.truststore.type", "PEM".to_owned()),
        ("ssl.truststore.location", authority.file().display().to_string()),
    ]);
    let options = BrokerOptions { listeners: vec![mutual], ..BrokerOptions::default() };
    let (database, broker) = (database().await, RealBroker::start_with(&options).await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    broker.create_topic("t", 1, &[]).await.unwrap();
    let servers = broker.listener("right").unwrap();
    let text = |own: &str| {
        let relay = kafka_relay("k", "t", "");
        toml(&database, "relay", Some(&servers), &format!("{}{own}{relay}", properties(Some(&authority.file()))))
    };
    let without = Process::spawn(&text(""), &["run"]);
    let code = async || standing(&owner, "k").await.map(|(_, _, _, error)| error["code"].clone());
    eventually(PATIENCE * 4, async || code().await == Some("kafka_client_certificate_refused".into())).await;
    let (_, halted, _, error) = standing(&owner, "k").await.unwrap();
    println!("{error}");
    assert!(error["hint"].as_str().unwrap().contains("ssl.certificate.location"), "{error}");
    assert_eq!(error["class"] == "fatal", halted, "{error}");
    drop(without);
    let own = authority.issue_client("relay", 2);
    let own = format!(
        "\"ssl.certificate.location\" = \"{}\"\n\"ssl.key.location\" = \"{}\"\n",
        own.certificate.display(),
        own.key.display()
    );
    let (code, _, log) = outbox_relay(&text(&own), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(ids(&broker.bootstrap_servers(), "t").await, ["1"]);
    broker.stop().await.unwrap();
}

/// `run` and `check` say what is wrong, and which keys fix it.
async fn refuses(owner: &Client, name: &str, text: String) {
    let process = Process::spawn(&text, &["run"]);
    // A certificate halts the relay; a broker without TLS may be one that is just starting, and is retried.
    let (said, code) = if name == "no_tls" {
        (line(&process, "relay cannot run; it is checked every 5 s").await, "kafka_unreachable")
    } else {
        (halted(owner, name).await.1, "kafka_refused")
    };
    let (exit, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    assert_eq!(exit, Some(3), "{document}");
    let found = finding(&document, code).unwrap_or_else(|| panic!("{code} in {document}"));
    for text in [said.to_string(), found.to_string()] {
        println!("{name}: {text}");
        let words = match name {
            "no_tls" => ["client says", "SSL connection closed by peer"],
            _ => ["certificate verify failed", "[kafka.properties]"],
        };
        assert!(words.iter().all(|word| text.contains(word)), "{words:?} in {text}");
    }
}
