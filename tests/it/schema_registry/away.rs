//! A registry that is away, hangs, refuses the relay, or does not have the schema.

use super::*;

/// The code of a relay's last error.
async fn error(owner: &Client, name: &str) -> (String, Value) {
    match standing(owner, name).await {
        Some((state, _, _, error)) => (state, error),
        None => (String::new(), Value::Null),
    }
}

async fn waits_for(owner: &Client, name: &str, code: &str) -> Value {
    eventually(PATIENCE * 2, async || error(owner, name).await.1["code"] == code).await;
    error(owner, name).await.1
}

// Guarantee: failures.schema-registry-away
#[tokio::test(flavor = "multi_thread")]
async fn rows_wait_in_order_while_no_schema_is_known_and_flow_by_a_known_one_while_the_registry_is_away() {
    let (database, mut registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    let topic = topic("sr-away").await;
    registry.register(&format!("{topic}-value"), "AVRO", BOOKING);
    run(&owner, "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 50)").await;
    registry.down();
    let relays = relay(&topic, "avro", ("on_poison = \"dead_letter\"", "", ""));
    let replica = replica(&database, &section(&registry.url(), "timeout = \"1s\""), &relays).await;
    let said = waits_for(&owner, &topic, "schema_registry_unavailable").await;
    assert_eq!(said["class"], "retry", "{said}");
    assert!(said["message"].as_str().unwrap().contains(&registry.url()), "{said}");
    registry.up().await.unwrap();
    let all: Vec<String> = (1..=50).map(|id| id.to_string()).collect();
    eventually(PATIENCE * 3, async || ids(&broker().await.bootstrap_servers(), &topic).await == all).await;
    registry.down();
    run(&owner, "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 50)").await;
    let all: Vec<String> = (1..=100).map(|id| id.to_string()).collect();
    eventually(PATIENCE, async || ids(&broker().await.bootstrap_servers(), &topic).await == all).await;
    let letters = owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!(letters.get::<_, i64>(0), 0);
    replica.stop().await;
}

// Guarantee: failures.schema-registry-away
#[tokio::test(flavor = "multi_thread")]
async fn row_that_needs_a_schema_which_is_not_known_waits_for_a_registry_that_hangs() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "ALTER TABLE bookings ADD topic text").await;
    let [first, second] = [topic("sr-hang").await, topic("sr-hang").await];
    for topic in [&first, &second] {
        registry.register(&format!("{topic}-value"), "AVRO", BOOKING);
    }
    let name = unique("routed");
    let relays = relay(
        "{{ topic }}",
        "avro",
        ("on_poison = \"dead_letter\"", "payload = { columns = [\"id\", \"created_at\", \"customer\"] }", ""),
    )
    .replacen("name = \"{{ topic }}\"", &format!("name = \"{name}\""), 1);
    let replica = replica(&database, &section(&registry.url(), "timeout = \"500ms\""), &relays).await;
    let insert = |topic: &str| format!("INSERT INTO bookings (topic) VALUES ('{topic}')");
    run(&owner, &insert(&first)).await;
    arrived(&first, 1).await;
    for answer in [Answer::Hang, Answer::Refuse(503, "busy".to_owned()), Answer::Refuse(200, "<html>".to_owned())] {
        registry.answer(answer);
        run(&owner, &insert(&first)).await;
    }
    // What is known is used; behind the row that needs another schema nothing passes.
    arrived(&first, 4).await;
    run(&owner, &(insert(&second) + ";" + &insert(&first))).await;
    waits_for(&owner, &name, "schema_registry_unavailable").await;
    registry.answer(Answer::Truth);
    assert_eq!((arrived(&second, 1).await.len(), arrived(&first, 5).await.len()), (1, 5));
    replica.stop().await;
}

// Guarantee: failures.schema-refused
#[tokio::test(flavor = "multi_thread")]
async fn schema_that_is_missing_or_incompatible_keeps_its_relay_from_starting_and_no_row_becomes_a_dead_letter() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings (payload) VALUES ('a'), ('b')").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("booking.avsc");
    std::fs::write(&file, BOOKING).unwrap();
    let [missing, incompatible] = [topic("sr-none").await, topic("sr-409").await];
    let letters = "on_poison = \"dead_letter\"";
    let of_file = format!("schema_file = \"{}\"\nregister = true", file.display());
    let relays = [relay(&missing, "avro", (letters, "", "")), relay(&incompatible, "avro", (letters, "", &of_file))];
    registry.refuse_as_incompatible(Some("READER_FIELD_MISSING_DEFAULT_VALUE at /fields/2"));
    let replica = replica(&database, &section(&registry.url(), ""), &relays.concat()).await;
    let said = waits_for(&owner, &missing, "schema_missing").await;
    assert!(said["message"].as_str().unwrap().contains(&format!("{missing}-value")), "{said}");
    let said = waits_for(&owner, &incompatible, "schema_refused").await;
    assert!(said["message"].as_str().unwrap().contains("READER_FIELD_MISSING_DEFAULT_VALUE at /fields/2"), "{said}");
    registry.refuse_as_incompatible(None);
    registry.register(&format!("{missing}-value"), "AVRO", BOOKING);
    for topic in [&missing, &incompatible] {
        arrived(topic, 2).await;
        fixed(&owner, topic).await;
    }
    let all = owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!(all.get::<_, i64>(0), 0);
    replica.stop().await;
}

// Guarantee: secrets.schema-registry
#[tokio::test(flavor = "multi_thread")]
async fn registry_that_refuses_the_password_keeps_the_relay_waiting_until_the_file_is_right() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings (payload) VALUES ('a')").await;
    let topic = topic("sr-401").await;
    registry.register(&format!("{topic}-value"), "AVRO", BOOKING);
    // relay:right
    registry.want("Basic cmVsYXk6cmlnaHQ=");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "wrongCanary\n").unwrap();
    let credentials = format!("username = \"relay\"\npassword_file = \"{}\"", file.display());
    let replica =
        replica(&database, &section(&registry.url(), &credentials), &relay(&topic, "avro", ("", "", ""))).await;
    let said = waits_for(&owner, &topic, "schema_registry_refused").await;
    assert!(said["message"].as_str().unwrap().contains("401") && !said.to_string().contains("Canary"), "{said}");
    std::fs::write(&file, "right\n").unwrap();
    arrived(&topic, 1).await;
    replica.stop().await;
}
