//! Answers of a broker that are well formed, and none to what was asked: they are not believed, and end nothing.

use std::time::Duration;

use crate::support::fuzz::lives;
use crate::support::kafka_proxy::{Answers, Elsewhere, KafkaProxy, Place, Sasl};
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, database, eventually, ids, kafka_relay, outbox_relay, toml, unique,
};

/// Values that are longer than what the proxy needs to spoil a request.
const INSERT: &str = "INSERT INTO bookings (payload) SELECT repeat('v', 400) FROM generate_series(1, 5)";

/// See `kafka_wire.rs`.
const CODES: [i16; 5] = [32_767, 101, 120, -200, -1_000];

// Guarantee: failures.unlisted-code
#[tokio::test(flavor = "multi_thread")]
async fn success_for_another_topic_or_partition_delivers_nothing() {
    let proxy = KafkaProxy::start().await;
    for elsewhere in [Elsewhere::Topic, Elsewhere::Partition] {
        let (servers, topic) = (proxy.broker.bootstrap_servers(), unique("elsewhere"));
        proxy.broker.create_topic(&topic, 2, &[]).await.unwrap();
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
        let altered = proxy.altered();
        proxy.answer(Answers::Elsewhere { elsewhere, topic: topic.clone() });
        let process = Process::spawn(&text, &["run"]);
        owner.batch_execute(INSERT).await.unwrap();
        eventually(PATIENCE * 2, async || proxy.altered() > altered).await;
        let error = "SELECT coalesce((SELECT last_error::text FROM outbox.cursor_status), '')";
        let refused = async || owner.query_one(error, &[]).await.unwrap().get::<_, String>(0).contains("kafka_");
        let position = "SELECT coalesce((SELECT position_id FROM outbox.cursor), '')";
        let is_done = async || owner.query_one(position, &[]).await.unwrap().get::<_, String>(0) == "5";
        eventually(PATIENCE * 2, async || refused().await || is_done().await).await;
        proxy.answer(Answers::Honest);
        eventually(PATIENCE * 3, is_done).await;
        assert_eq!(ids(&servers, &topic).await, ["1", "2", "3", "4", "5"], "{elsewhere:?}: {}", process.log());
    }
}

/// A broker that asks for a password by this mechanism, and a configuration that has one.
async fn asking(mechanism: &str, module: &str) -> (KafkaProxy, Database, tokio_postgres::Client, String, String) {
    let jaas = format!("org.apache.kafka.common.security.{module} required user_relay=\"password\";");
    let key: &'static str = format!("{}.sasl.jaas.config", mechanism.to_ascii_lowercase()).leak();
    let settings = vec![(key, jaas), ("sasl.enabled.mechanisms", mechanism.to_owned())];
    let proxy = KafkaProxy::start_with("SASL_PLAINTEXT", settings).await;
    let topic = unique("asking");
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let properties = format!(
        "[kafka.properties]\n\"security.protocol\" = \"sasl_plaintext\"\n\"sasl.mechanism\" = \"{mechanism}\"\n\
         \"sasl.username\" = \"relay\"\n\"sasl.password\" = \"password\"\n"
    );
    let relay = kafka_relay("events", &topic, "");
    let text = toml(&database, "relay", Some(&proxy.servers()), &format!("{properties}{relay}"));
    (proxy, database, owner, text, topic)
}

/// A replica sends what is written now, and lives.
async fn delivers(proxy: &KafkaProxy, owner: &tokio_postgres::Client, text: &str, topic: &str) {
    let process = Process::spawn(text, &["run"]);
    owner.batch_execute(INSERT).await.unwrap();
    let arrived = async || ids(&proxy.broker.bootstrap_servers(), topic).await.len() == 5;
    eventually(PATIENCE * 3, async || arrived().await || !lives(&process)).await;
    assert!(lives(&process), "{}", process.log());
}

/// The client asks again when the interval is over. A time before now was a timer that fired at once, for ever; the microseconds of an
/// hour did not fit its number, and were such a time.
#[tokio::test(flavor = "multi_thread")]
async fn impossible_interval_of_metrics_makes_no_storm() {
    let proxy = KafkaProxy::start().await;
    let topic = unique("interval");
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
    for interval in [-1, 0, i32::MIN, 3_000_000] {
        let altered = proxy.altered();
        proxy.answer(Answers::Interval(interval));
        let process = Process::spawn(&text, &["run"]);
        eventually(PATIENCE * 2, async || proxy.altered() > altered).await;
        // How long the load lasts.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let asked = proxy.altered() - altered;
        println!("{interval}: asked {asked} times");
        assert!(asked < 20, "{interval}: asked {asked} times in three seconds");
        assert!(lives(&process), "{interval}");
    }
    delivers(&proxy, &owner, &text, &topic).await;
}

/// The client authenticates again before a session ends, at times that are none too.
#[tokio::test(flavor = "multi_thread")]
async fn impossible_lifetime_of_session_stops_no_rows() {
    let (proxy, _database, owner, text, topic) = asking("PLAIN", "plain.PlainLoginModule").await;
    for lifetime in [-1, i64::MIN / 900, i64::MAX / 500] {
        let altered = proxy.altered();
        proxy.answer(Answers::Sasl(Sasl::Lifetime(lifetime)));
        let process = Process::spawn(&text, &["run"]);
        eventually(PATIENCE * 2, async || proxy.altered() > altered + 1 || !lives(&process)).await;
        assert!(lives(&process), "{lifetime}");
    }
    proxy.answer(Answers::Honest);
    delivers(&proxy, &owner, &text, &topic).await;
}

/// The client's answer to it is built on the stack of its thread, of three times its length.
#[tokio::test(flavor = "multi_thread")]
async fn long_message_of_scram_does_not_end_the_process() {
    let (proxy, _database, owner, text, _) = asking("SCRAM-SHA-256", "scram.ScramLoginModule").await;
    proxy.answer(Answers::Sasl(Sasl::LongNonce(8 << 20)));
    let mut process = Process::spawn(&text, &["run"]);
    owner.batch_execute(INSERT).await.unwrap();
    eventually(PATIENCE * 2, async || {
        proxy.altered() > 3 || process.log().contains("limit is 65536") || !lives(&process)
    })
    .await;
    assert!(lives(&process), "{:?}", process.wait().await);
    let altered = proxy.altered();
    eventually(PATIENCE * 3, async || proxy.altered() > altered || !lives(&process)).await;
    assert!(lives(&process), "{:?}", process.wait().await);
}

/// What a consumer asks has such codes, too: `verify` fails or comes to what is true, and never ends by a signal.
// Guarantee: failures.unlisted-code
#[tokio::test(flavor = "multi_thread")]
async fn verify_outlives_codes_that_no_client_lists() {
    let proxy = KafkaProxy::start().await;
    let topic = unique("verified");
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(INSERT).await.unwrap();
    let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    for place in [Place::Fetch, Place::FetchPartition, Place::Offsets, Place::Coordinator] {
        let before = proxy.altered();
        for number in CODES {
            proxy.answer(Answers::Coded { place, topic: topic.clone(), code: number });
            let (code, out, log) = outbox_relay(&text, &["verify", "events", "--timeout", "3s"]).await;
            println!("{place:?} {number}: {code:?} {} {}", out.trim(), log.trim());
            assert!(matches!(code, Some(0 | 1)), "{place:?} {number}: {code:?}\n{out}{log}");
        }
        assert!(proxy.altered() > before, "{place:?} is asked");
    }
    proxy.answer(Answers::Honest);
    let (code, out, log) = outbox_relay(&text, &["verify", "events"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
}

// Guarantee: failures.unlisted-code
#[tokio::test(flavor = "multi_thread")]
async fn authentication_outlives_codes_that_no_client_lists() {
    let (proxy, _database, owner, text, topic) = asking("PLAIN", "plain.PlainLoginModule").await;
    for place in [Place::SaslHandshake, Place::SaslAuthenticate] {
        for code in CODES {
            let altered = proxy.altered();
            proxy.answer(Answers::Coded { place, topic: topic.clone(), code });
            let mut process = Process::spawn(&text, &["run"]);
            eventually(PATIENCE * 2, async || proxy.altered() > altered + 1 || !lives(&process)).await;
            assert!(lives(&process), "{place:?} {code}: {:?}\n{}", process.wait().await, process.log());
        }
    }
    proxy.answer(Answers::Honest);
    delivers(&proxy, &owner, &text, &topic).await;
}
