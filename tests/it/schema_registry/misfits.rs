//! Rows that do not fit, and schemas that change.

use super::*;

/// Messages of the dead letters, by their rows.
async fn letters(owner: &Client) -> Vec<(String, Value, String)> {
    let sql = "SELECT message_id, error::text, convert_from(payload, 'UTF8') FROM outbox.dead_letter WHERE state = 'dead' ORDER BY id";
    let rows = owner.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), serde_json::from_str(row.get(1)).unwrap(), row.get(2))).collect()
}

// Guarantee: failures.schema-mismatch
#[tokio::test(flavor = "multi_thread")]
async fn row_that_does_not_fit_is_a_dead_letter_that_names_its_field_and_the_next_rows_flow() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "ALTER TABLE bookings ADD seats bigint").await;
    let topic = topic("sr-misfit").await;
    registry.register(&format!("{topic}-value"), "AVRO", BOOKING_2);
    let relays = relay(&topic, "avro", ("on_poison = \"dead_letter\"", "", ""));
    let replica = replica(&database, &section(&registry.url(), ""), &relays).await;
    run(&owner, "INSERT INTO bookings (seats) VALUES (1), (3000000000), (NULL), (-3000000000), (4)").await;
    let records = arrived(&topic, 3).await;
    assert_eq!(records.iter().map(Record::id).collect::<Vec<_>>(), ["1", "3", "5"]);
    eventually(PATIENCE, async || letters(&owner).await.len() == 2).await;
    let found = letters(&owner).await;
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("2", "4"));
    for (_, error, payload) in &found {
        assert_eq!((&error["class"], &error["code"]), (&"poison".into(), &"schema_mismatch".into()), "{error}");
        let message = error["message"].as_str().unwrap();
        let named = format!("subject {topic}-value (id 1): field seats: the number is not a whole number of 32 bits");
        assert!(message.contains(&named) && !message.contains("3000000000"), "the field, and not its value: {message}");
        assert!(payload.starts_with("{\"id\":") && payload.contains("3000000000"), "as it was read: {payload}");
    }
    // A schema that it fits, and the row is sent again.
    let id = registry.register(&format!("{topic}-value"), "AVRO", &BOOKING_2.replace("\"int\"", "\"long\""));
    let text = text(&database, &section(&registry.url(), ""), &relays).await;
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", &topic, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let records = arrived(&topic, 5).await;
    let seats = Decoder::new(&registry.url(), None).avro(value(&records[3])).await["seats"].clone();
    assert_eq!(
        (records[3].header("replayed"), super::id(value(&records[3])), seats),
        (Some("true"), id, json!(3_000_000_000_i64))
    );
    replica.stop().await;
}

// Guarantee: failures.schema-mismatch
#[tokio::test(flavor = "multi_thread")]
async fn row_that_does_not_fit_halts_its_relay_and_goes_by_a_later_schema_once_there_is_one() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    let topic = topic("sr-halt").await;
    registry.register(&format!("{topic}-value"), "JSON", r#"{"properties":{"payload":{"maxLength":3}}}"#);
    let relays = relay(&topic, "json_schema", ("", "", ""));
    let replica = replica(&database, &section(&registry.url(), ""), &relays).await;
    run(&owner, "INSERT INTO bookings (payload) VALUES ('ok'), ('too long'), ('ok')").await;
    let (message_id, error) = halted(&owner, &topic).await;
    assert_eq!((message_id.as_deref(), &error["code"]), (Some("2"), &"schema_mismatch".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("field payload: "), "{error}");
    let id = registry.register(&format!("{topic}-value"), "JSON", r#"{"properties":{"payload":{"maxLength":9}}}"#);
    let text = text(&database, &section(&registry.url(), ""), &relays).await;
    assert_eq!(outbox_relay(&text, &["cursor", "resume", &topic]).await.0, Some(0));
    let records = arrived(&topic, 3).await;
    assert_eq!(records.iter().map(Record::id).collect::<Vec<_>>(), ["1", "2", "3"]);
    assert_eq!(super::id(value(&records[1])), id);
    replica.stop().await;
}

// Guarantee: delivery.schema-evolution
#[tokio::test(flavor = "multi_thread")]
async fn later_schema_is_used_from_a_refresh_on_and_by_the_first_row_that_needs_it() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    let topic = topic("sr-later").await;
    let subject = format!("{topic}-value");
    registry.register(&subject, "AVRO", BOOKING);
    let registered = section(&registry.url(), "").replace("\"1s\"", "\"1h\"");
    let replica = replica(&database, &registered, &relay(&topic, "avro", ("", "", ""))).await;
    let insert = "INSERT INTO bookings (payload) VALUES ('p')";
    run(&owner, insert).await;
    arrived(&topic, 1).await;
    // Long before the refresh: the schema first, as an application rolls it out, then the column.
    let second = registry.register(&subject, "AVRO", BOOKING_2);
    run(&owner, "BEGIN; ALTER TABLE bookings ADD seats int; INSERT INTO bookings (seats) VALUES (7); COMMIT").await;
    let records = arrived(&topic, 2).await;
    assert_eq!(super::id(value(&records[1])), second);
    assert_eq!(Decoder::new(&registry.url(), None).avro(value(&records[1])).await["seats"], 7);
    replica.stop().await;

    let replica = self::replica(&database, &section(&registry.url(), ""), &relay(&topic, "avro", ("", "", ""))).await;
    let third = registry.register(
        &subject,
        "AVRO",
        &BOOKING_2.replace("null}]}", "null},{\"name\":\"note\",\"type\":\"string\",\"default\":\"\"}]}"),
    );
    let mut sent = 2;
    // No row needs it: it is found by the time.
    let uses_third = async || {
        run(&owner, insert).await;
        sent += 1;
        super::id(value(arrived(&topic, sent).await.last().unwrap())) == third
    };
    eventually(PATIENCE * 2, uses_third).await;
    replica.stop().await;
}

// Guarantee: failures.schema-refused
#[tokio::test(flavor = "multi_thread")]
async fn row_whose_topic_has_no_schema_is_refused_alone_where_rows_name_the_topics() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "ALTER TABLE bookings ADD topic text").await;
    let [known, unknown] = [topic("sr-known").await, topic("sr-unknown").await];
    registry.register(&format!("{known}-value"), "AVRO", BOOKING);
    let name = unique("routed");
    let sink = "payload = { columns = [\"id\", \"created_at\", \"customer\", \"payload\"] }";
    let relays = relay("{{ topic }}", "avro", ("on_poison = \"dead_letter\"", sink, "")).replacen(
        "name = \"{{ topic }}\"",
        &format!("name = \"{name}\""),
        1,
    );
    let replica = replica(&database, &section(&registry.url(), ""), &relays).await;
    let insert = format!("INSERT INTO bookings (topic) VALUES ('{known}'), ('{unknown}'), ('{known}')");
    run(&owner, &insert).await;
    let records = arrived(&known, 2).await;
    assert_eq!(records.iter().map(Record::id).collect::<Vec<_>>(), ["1", "3"]);
    eventually(PATIENCE, async || letters(&owner).await.len() == 1).await;
    let (id, error, _) = letters(&owner).await.remove(0);
    assert_eq!((id.as_str(), &error["code"]), ("2", &"schema_missing".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains(&format!("{unknown}-value")), "{error}");
    replica.stop().await;
}
