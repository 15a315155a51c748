//! What `check` says of a relay's schema, and what the configuration refuses.

use outbox_relay::config::{Config, Environment};

use super::*;
use crate::support::outside::finding;

/// The findings of `check`.
async fn findings(text: &str) -> (Option<i32>, Value) {
    let (code, said, log) = outbox_relay(text, &["check", "-o", "json"]).await;
    (code, serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{log}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn check_asks_the_registry_and_compares_its_fields_with_the_columns() {
    let (database, mut registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    let topic = topic("sr-check").await;
    let subject = format!("{topic}-value");
    let section = section(&registry.url(), "timeout = \"1s\"");
    let text = async |format: &str| text(&database, &section, &relay(&topic, "avro", ("", "", format))).await;
    let (code, found) = findings(&text("").await).await;
    assert!(code == Some(3) && finding(&found, "schema_missing").is_some(), "{found}");
    registry.register(&subject, "AVRO", BOOKING);
    let (code, found) = findings(&text("").await).await;
    let schema = finding(&found, "schema").unwrap_or_else(|| panic!("{found}"));
    assert_eq!((code, &schema["level"]), (Some(0), &"ok".into()), "{found}");
    let message = format!("subject {subject} has version 1 (id 1) of org.example.Booking");
    assert_eq!(schema["message"], message.as_str());

    run(&owner, "ALTER TABLE bookings ADD seats int, DROP customer; ALTER TABLE bookings ADD customer_name text").await;
    let columns = text("").await.replace("key = \"customer\"\n", "key = \"id\"\n");
    let (code, found) = findings(&columns).await;
    let missing = finding(&found, "schema_field_without_column").unwrap_or_else(|| panic!("{found}"));
    let unknown = finding(&found, "schema_column_without_field").unwrap_or_else(|| panic!("{found}"));
    assert!(missing["message"].as_str().unwrap().contains("customer"), "{missing}");
    assert!(unknown["message"].as_str().unwrap().contains("customer_name, seats"), "{unknown}");
    assert_eq!(code, Some(3));
    let (_, found) =
        findings(&columns.replace("[relay.sink.kafka.avro]", "[relay.sink.kafka.avro]\nunknown = \"ignore\"")).await;
    assert!(finding(&found, "schema_column_without_field").is_none(), "{found}");

    let (_, found) = findings(&columns.replace("avro", "protobuf")).await;
    let unusable = finding(&found, "schema_unusable").unwrap_or_else(|| panic!("{found}"));
    assert!(unusable["message"].as_str().unwrap().contains("it is of the type AVRO"), "{unusable}");
    registry.down();
    let (code, found) = findings(&text("").await).await;
    assert!(code == Some(3) && finding(&found, "schema_registry_unavailable").is_some(), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_registers_nothing_and_tells_what_the_registry_would_refuse() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    bookings(&database, CLOCK).await;
    let topic = topic("sr-register").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("booking.avsc");
    std::fs::write(&file, BOOKING).unwrap();
    let of_file = format!("schema_file = \"{}\"\nregister = true", file.display());
    let text = text(&database, &section(&registry.url(), ""), &relay(&topic, "avro", ("", "", &of_file))).await;
    let (code, found) = findings(&text).await;
    let schema = finding(&found, "schema").unwrap_or_else(|| panic!("{found}"));
    assert!(
        code == Some(0) && schema["message"].as_str().unwrap().contains("the relay registers it when it starts"),
        "{found}"
    );
    registry.register(&format!("{topic}-value"), "AVRO", "\"string\"");
    registry.refuse_as_incompatible(Some("TYPE_MISMATCH"));
    let (code, found) = findings(&text).await;
    let refused = finding(&found, "schema_refused").unwrap_or_else(|| panic!("{found}"));
    assert!(code == Some(3) && refused["message"].as_str().unwrap().contains("TYPE_MISMATCH"), "{found}");
    assert!(registry.asked().iter().all(|question| !question.ends_with("/versions")), "{:?}", registry.asked());
}

#[test]
fn configuration_refuses_what_contradicts_itself() {
    let parse = |registry: &str, format: &str, keys: &str| {
        let text = format!(
            "[postgres]\nurl = \"postgresql://relay@127.0.0.1/app\"\n[kafka]\nbootstrap_servers = \"127.0.0.1:1\"\n{registry}\n"
        ) + &relay("t", format, ("", "", keys));
        Config::parse(&text, "test.toml", &Environment::default())
            .map(|config| config.redacted())
            .map_err(|problems| problems.to_string())
    };
    let registry = section("http://127.0.0.1:1/", "");
    let shown = parse(&registry, "avro", "").unwrap();
    for line in [
        "url = \"http://127.0.0.1:1\"",
        "refresh = \"1s\"",
        "timeout = \"3s\"",
        "version = \"latest\"",
        "unknown = \"refuse\"",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let with_user = section("http://a:b@127.0.0.1:1", "");
    let half = section("http://127.0.0.1:1", "username = \"a\"");
    let both = section("http://127.0.0.1:1", "username = \"a\"\npassword_file = \"b\"\ntoken_file = \"c\"");
    let pair = section("http://127.0.0.1:1", "cert_file = \"a\"");
    let slow = section("http://127.0.0.1:1", "timeout = \"3001ms\"");
    let registry = registry.as_str();
    for (registry, format, keys, said) in [
        ("", "avro", "", "the section [schema_registry] is missing"),
        (registry, "avro", "register = true", "there is no schema to be registered"),
        (registry, "avro", "schema_file = \"a\"\nversion = 1", "schema_file says which schema counts"),
        (registry, "avro", "version = 0", "no number of a version"),
        (registry, "protobuf", "subject = \"record\"", "write message = "),
        (registry, "avro", "message = \"a.B\"", "message"),
        (registry, "json_schema", "unknown = \"ignore\"", "unknown"),
        (with_user.as_str(), "avro", "", "credentials in a URL"),
        (half.as_str(), "avro", "", "missing beside username"),
        (both.as_str(), "avro", "", "logs in in one way"),
        (pair.as_str(), "avro", "", "name both"),
        (slow.as_str(), "avro", "", "write at least deadline = \"5002ms\", or [schema_registry] timeout = \"3s\""),
    ] {
        let problems = parse(registry, format, keys).expect_err(said);
        assert!(problems.contains(said), "{said}: {problems}");
    }
}
