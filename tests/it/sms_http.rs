//! SMS by HTTP: one at a time and in order, outages waited out, refusals that halt, and a provider that hangs harms
//! nobody else.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{fixed, halted, standing};
use crate::support::{
    CLOCK, Database, PATIENCE, Replica, bookings, broker, config, database, eventually, kafka_relay, outbox_relay,
    records, toml, unique,
};

async fn stage() -> (Database, Client, Gateway) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+15551234567'").await.unwrap();
    (database, owner, Gateway::start().await)
}

async fn book(owner: &Client, count: i32) {
    let sql = "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, $1)";
    owner.execute(sql, &[&count]).await.unwrap();
}

#[track_caller]
fn accepted<'a>(gateway: &'a Gateway, expected: &'a [&'a str]) -> impl Future<Output = ()> + 'a {
    eventually(PATIENCE * 2, move || async move { gateway.accepted() == expected })
}

async fn resume(database: &Database, relays: &str, cursor: &str) {
    let text = toml(database, "relay", None, relays);
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", cursor]).await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_go_out_in_order_and_one_at_a_time_whatever_the_number_of_replicas() {
    let (database, owner, gateway) = stage().await;
    book(&owner, 30).await;
    let config = config(&database, "relay", None, &sms_relay("sms", &gateway, ""));
    let replicas = [Replica::start(&config, "r1"), Replica::start(&config, "r2")];
    let expected: Vec<String> = (1..=30).map(|id: i32| id.to_string()).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    accepted(&gateway, &expected).await;
    for replica in replicas {
        replica.stop().await;
    }
    assert_eq!((gateway.accepted().len(), gateway.asked().len(), gateway.most_at_once()), (30, 30, 1));
    let first = &gateway.asked()[0];
    assert_eq!(first.form, "To=%2B15551234567&From=%2B15550000000&Body=Booking%201%20confirmed");
    assert_eq!((first.key.as_str(), first.authorization.as_str()), ("sms/1", "Basic QUMxOmh1bnRlcjI="));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_waited_out_and_never_counted_against_a_message() {
    let (database, owner, gateway) = stage().await;
    gateway.set(Mood::Refuse(503, "busy"));
    book(&owner, 2).await;
    let config = config(&database, "relay", None, &sms_relay("sms", &gateway, "timeout = \"200ms\""));
    let replica = Replica::start(&config, "r1");
    eventually(PATIENCE, || async { gateway.asked().len() >= 4 }).await;
    let (state, is_halted, _, error) = standing(&owner, "sms").await.unwrap();
    assert_eq!((state.as_str(), is_halted), ("backing_off", false));
    assert_eq!((&error["class"], &error["code"]), (&"retry".into(), &"http_503".into()));
    gateway.set(Mood::Hang);
    let timed_out = || async { standing(&owner, "sms").await.unwrap().3["code"] == "timeout" };
    eventually(PATIENCE * 2, timed_out).await;
    assert!(!standing(&owner, "sms").await.unwrap().1, "a time-out halts nothing");
    gateway.set(Mood::Accept);
    accepted(&gateway, &["1", "2"]).await;
    fixed(&owner, "sms").await;
    replica.stop().await;
    let asked = gateway.asked();
    assert!(asked.iter().all(|asked| asked.key == "sms/1" || asked.accepted), "the second never overtakes the first");
}

// Guarantee: failures.key-in-use
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_in_use_at_the_receiver_is_waited_for_in_order_and_halts_nothing() {
    let (database, owner, gateway) = stage().await;
    gateway.set(Mood::Refuse(503, "{}"));
    book(&owner, 2).await;
    let replica = Replica::start(&config(&database, "relay", None, &sms_relay("sms", &gateway, "")), "r1");
    eventually(PATIENCE, || async { !gateway.asked().is_empty() }).await;
    gateway.set(Mood::Refuse(409, r#"{"error":"a request with this key is being processed"}"#));
    let before = gateway.asked().len();
    eventually(PATIENCE, || async { gateway.asked().len() >= before + 3 }).await;
    let (state, is_halted, _, error) = standing(&owner, "sms").await.unwrap();
    assert_eq!((state.as_str(), is_halted), ("backing_off", false));
    assert_eq!((&error["class"], &error["code"]), (&"retry".into(), &"http_409".into()));
    gateway.set(Mood::Accept);
    accepted(&gateway, &["1", "2"]).await;
    fixed(&owner, "sms").await;
    replica.stop().await;
    let first = gateway.asked().iter().all(|asked| asked.key == "sms/1" || asked.accepted);
    assert!(first, "the second waits for the first");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured() {
    let (database, owner, gateway) = stage().await;
    gateway.set(Mood::Later("2"));
    book(&owner, 1).await;
    let replica = Replica::start(&config(&database, "relay", None, &sms_relay("sms", &gateway, "")), "r1");
    accepted(&gateway, &["1"]).await;
    replica.stop().await;
    let asked = gateway.asked();
    assert_eq!(asked.len(), 2);
    let pause = asked[1].at - asked[0].at;
    assert!(pause >= Duration::from_millis(1950), "{pause:?}");
}

// Guarantee: failures.resume
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_number_halts_as_poison_names_the_message_and_ends_by_resume() {
    let (database, owner, gateway) = stage().await;
    let relays = sms_relay("sms", &gateway, "");
    let config = config(&database, "relay", None, &relays);
    let replicas = [Replica::start(&config, "r1"), Replica::start(&config, "r2")];
    book(&owner, 1).await;
    accepted(&gateway, &["1"]).await;
    gateway.set(Mood::Refuse(400, r#"{"code":21211,"message":"The 'To' number +15551234567 is not valid."}"#));
    book(&owner, 2).await;
    let (message_id, error) = halted(&owner, "sms").await;
    assert_eq!(
        (message_id.as_deref(), &error["class"], &error["code"]),
        (Some("2"), &"poison".into(), &"twilio_21211".into())
    );
    assert!(!error.to_string().contains("1234567"), "the receiver's number is no matter for the log: {error}");
    // Both replicas look at the table every 200 ms at the latest; a third message gives them a reason.
    book(&owner, 1).await;
    let looked = || async {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' \
                   AND datname = current_database() AND query_start > (SELECT max(created_at) FROM bookings)";
        owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) >= 2
    };
    eventually(PATIENCE, looked).await;
    assert_eq!(gateway.asked().len(), 2, "no replica sends the poison again");
    gateway.set(Mood::Accept);
    resume(&database, &relays, "sms").await;
    accepted(&gateway, &["1", "2", "3", "4"]).await;
    fixed(&owner, "sms").await;
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_halt_as_fatal_and_a_changed_configuration_ends_it() {
    let (database, owner, gateway) = stage().await;
    gateway.set(Mood::Refuse(401, r#"{"code":20003,"message":"Authenticate"}"#));
    book(&owner, 1).await;
    let relays = sms_relay("sms", &gateway, "");
    let first = config(&database, "relay", None, &relays);
    let replica = Replica::start(&first, "r1");
    let (_, error) = halted(&owner, "sms").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"twilio_20003".into()));
    replica.stop().await;
    gateway.set(Mood::Accept);

    // The same configuration again: the halt stays, whoever starts.
    let asked = gateway.asked().len();
    let text = toml(&database, "relay", None, &relays);
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "10s"]).await;
    assert_eq!((code, gateway.asked().len()), (Some(1), asked), "{log}");
    assert!(standing(&owner, "sms").await.unwrap().1);

    let changed = relays.replace("hunter2", "hunter3");
    let replica = Replica::start(&config(&database, "relay", None, &changed), "r1");
    accepted(&gateway, &["1"]).await;
    fixed(&owner, "sms").await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_template_fails_is_poison_and_no_crash() {
    let (database, owner, gateway) = stage().await;
    owner.batch_execute("INSERT INTO bookings (phone) VALUES ('+1'), (NULL), ('+3')").await.unwrap();
    let relays = sms_relay("sms", &gateway, "");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    let (message_id, error) = halted(&owner, "sms").await;
    assert_eq!(
        (message_id.as_deref(), &error["class"], &error["code"]),
        (Some("2"), &"poison".into(), &"template".into())
    );
    assert!(error["message"].as_str().unwrap().contains("phone"), "{error}");
    assert_eq!(gateway.accepted(), ["1"]);
    owner.batch_execute("UPDATE bookings SET phone = '+2' WHERE phone IS NULL").await.unwrap();
    resume(&database, &relays, "sms").await;
    accepted(&gateway, &["1", "2", "3"]).await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_sms_halted_kafka_of_the_same_table_keeps_delivering() {
    let (database, owner, gateway) = stage().await;
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let (broker, topic) = (broker().await, unique("beside"));
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let relays = format!("{}{}", sms_relay("sms", &gateway, ""), kafka_relay("kafka", &topic, ""));
    let replica = Replica::start(&config(&database, "relay", Some(&servers), &relays), "r1");
    book(&owner, 1).await;
    halted(&owner, "sms").await;
    let mut worst = Duration::ZERO;
    for count in 2..=11 {
        book(&owner, 1).await;
        let begun = Instant::now();
        eventually(PATIENCE, || async { records(&servers, &topic).await.len() >= count }).await;
        worst = worst.max(begun.elapsed());
    }
    println!("with SMS halted the slowest of 10 rows took {worst:?}, the consumer's start included");
    replica.stop().await;
    assert_eq!(records(&servers, &topic).await.len(), 11);
    assert_eq!(gateway.asked().len(), 1);
}

// Guarantee: failures.ddl
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_leaves_the_application_and_its_ddl_alone() {
    let (database, owner, gateway) = stage().await;
    gateway.set(Mood::Hang);
    let relays: String = (1..=6).map(|n| sms_relay(&format!("sms{n}"), &gateway, "")).collect();
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    book(&owner, 1).await;
    eventually(PATIENCE, || async { gateway.most_at_once() >= 2 }).await;
    let app = database.connect("app").await;
    let mut worst = Duration::ZERO;
    let mut connections = 0;
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        let begun = Instant::now();
        app.batch_execute("INSERT INTO bookings (payload) VALUES ('x')").await.unwrap();
        worst = worst.max(begun.elapsed());
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%' AND datname = $1";
        connections = connections.max(owner.query_one(sql, &[&database.name]).await.unwrap().get::<_, i64>(0));
    }
    let begun = Instant::now();
    owner.batch_execute("ALTER TABLE bookings ADD COLUMN note text").await.unwrap();
    let ddl = begun.elapsed();
    println!("with the provider hanging: slowest insert {worst:?}, {connections} connections, ALTER TABLE {ddl:?}");
    assert!(worst < Duration::from_secs(1), "{worst:?}");
    assert!(ddl < Duration::from_secs(2), "{ddl:?}");
    assert!((1..=10).contains(&connections), "{connections} connections, pool_size is 10");
    gateway.set(Mood::Accept);
    eventually(PATIENCE * 2, || async { gateway.accepted().len() >= 12 }).await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_holds_over_all_replicas_together() {
    let (database, owner, gateway) = stage().await;
    book(&owner, 12).await;
    let config = config(&database, "relay", None, &sms_relay("sms", &gateway, "rate_per_second = 5.0"));
    let replicas = [Replica::start(&config, "r1"), Replica::start(&config, "r2")];
    eventually(PATIENCE * 2, || async { gateway.accepted().len() >= 12 }).await;
    for replica in replicas {
        replica.stop().await;
    }
    let asked = gateway.asked();
    assert_eq!(asked.len(), 12);
    let shortest = asked.windows(2).map(|pair| pair[1].at - pair[0].at).min().unwrap();
    println!("shortest time between two requests at 5 per second: {shortest:?}");
    assert!(shortest >= Duration::from_millis(180), "{shortest:?}");
}
