//! Nothing, in its kinds: NULL is not the empty text.

use rdkafka::message::{Headers, Message};

use super::{holds, replica, topic};
use crate::support::records::each;
use crate::support::{broker, database};

/// Key, value and the two configured headers, as they lie in the topic.
type Parts = (Option<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>);

async fn parts(servers: &str, topic: &str) -> Vec<(Option<Vec<u8>>, Parts)> {
    each(servers, topic, |message| {
        let headers = message.headers().unwrap();
        let header = |name: &str| {
            let found: Vec<_> = headers.iter().filter(|header| header.key == name).collect();
            assert_eq!(found.len(), 1, "{name} once");
            found[0].value.map(<[u8]>::to_vec)
        };
        let (key, value) = (message.key().map(<[u8]>::to_vec), message.payload().map(<[u8]>::to_vec));
        (header("id"), (key, value, header("x-a"), header("x-b")))
    })
    .await
}

// Guarantee: delivery.empty-values
#[tokio::test(flavor = "multi_thread")]
async fn empty_and_null_payloads_keys_headers_and_ids_arrive_as_exactly_that_in_order() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE odd (id text PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), \
             key text NOT NULL, payload text, bin bytea, a text, b text); \
             CREATE INDEX ON odd (created_at, id); GRANT SELECT ON odd TO relay; \
             INSERT INTO odd (id, key, payload, bin, a, b) VALUES \
             ('', '', '', '', '', NULL), ('b', '', NULL, NULL, NULL, ''), ('a', 'k', '', '', NULL, NULL), \
             (' ', '', 'x', 'x', '', ''), ('z', 'k', NULL, NULL, 'y', NULL)",
        )
        .await
        .unwrap();
    let (text, bin, keyless) = (topic("text", &[]).await, topic("bin", &[]).await, topic("keyless", &[]).await);
    let relay = |topic: &str, key: &str, payload: &str| {
        format!(
            "[[relay]]\nname = \"{topic}\"\n[relay.source.stream]\ntable = \"public.odd\"\n[relay.sink.kafka]\n\
             topic = \"{topic}\"\n{key}\npayload = {{ column = \"{payload}\" }}\n\
             headers = {{ x-a = \"a\", x-b = \"b\" }}\n"
        )
    };
    let key = "key = \"key\"";
    let relays = [relay(&text, key, "payload"), relay(&bin, key, "bin"), relay(&keyless, "", "payload")].concat();
    let _replica = replica(&database, &relays).await;

    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let expected: Vec<(Option<Vec<u8>>, Parts)> = vec![
        (bytes(""), (bytes(""), bytes(""), bytes(""), None)),
        (bytes("b"), (bytes(""), None, None, bytes(""))),
        (bytes("a"), (bytes("k"), bytes(""), None, None)),
        (bytes(" "), (bytes(""), bytes("x"), bytes(""), bytes(""))),
        (bytes("z"), (bytes("k"), None, bytes("y"), None)),
    ];
    let servers = broker().await.bootstrap_servers();
    for topic in [&text, &bin, &keyless] {
        holds(&servers, topic, 5).await;
    }
    assert_eq!(parts(&servers, &text).await, expected);
    assert_eq!(parts(&servers, &bin).await, expected);
    let without_key = expected.into_iter().map(|(id, (_, value, a, b))| (id, (None, value, a, b)));
    assert_eq!(parts(&servers, &keyless).await, without_key.collect::<Vec<_>>());
}
