//! The built-in outbox: docs/howto/outbox.md word for word, and the headers of its rows.

use std::time::Duration;

use crate::support::outside::{halted, is_halted, line};
use crate::support::pages::{blocks, commands, connected, page};
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, broker, database, eventually, outbox_relay, records, toml, unique};

// Guarantee: delivery.row-headers
#[tokio::test(flavor = "multi_thread")]
async fn guide_to_outbox_publishes_rows_with_headers() {
    let (page, database, broker) = (page("outbox"), database().await, broker().await);
    let prefix = unique("shop");
    broker.create_topic(&format!("{prefix}.bookings"), 2, &[]).await.unwrap();
    let [configuration] = blocks(&page, "toml")[..] else { panic!("one configuration") };
    let of = |user: &str| {
        let pairs = [("127.0.0.1:9092", broker.bootstrap_servers()), ("shop.", format!("{prefix}."))];
        let text = pairs.iter().fold(connected(configuration, &database.url(user)), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        format!("{text}\n[admin]\nlisten = \"127.0.0.1:0\"\n")
    };
    let [owners, applications] = blocks(&page, "sql")[..] else { panic!("two blocks of SQL") };
    let up = ["migrate", "up", "--relay-role", "relay", "--app-role", "app"];
    let (code, _, log) = outbox_relay(&of("postgres"), &up).await;
    assert_eq!(code, Some(0), "{log}");
    database.connect("postgres").await.batch_execute(owners).await.unwrap();
    let (code, out, log) = outbox_relay(&of("relay"), &["check"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let _replica = Process::spawn(&of("relay"), &["run"]);
    database.connect("app").await.batch_execute(applications).await.unwrap();

    let (servers, topic) = (broker.bootstrap_servers(), format!("{prefix}.bookings"));
    eventually(PATIENCE * 2, || async { records(&servers, &topic).await.len() == 1 }).await;
    let record = records(&servers, &topic).await.remove(0);
    let payload = r#"{"reference": "0af76519-16cd-43dd-8448-eb211c80319c", "customer": "ada", "number": 1}"#;
    assert_eq!((record.key.as_deref(), record.text().as_str()), (Some("ada"), payload));
    let mut names: Vec<&str> = record.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let all = ["attempt", "created_at", "event", "id", "relay", "traceparent", "x-transaction"];
    assert_eq!(names, all);
    assert_eq!((record.header("event"), record.header("attempt")), (Some("BookingCreated"), Some("1")));
    assert_eq!(record.header("relay"), Some("events"));
    for command in commands(&page) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let (code, out, log) = outbox_relay(&of("relay"), &words).await;
        assert_eq!(code, Some(0), "{command:?}: {out}{log}");
    }
}

// Guarantee: delivery.row-headers
#[tokio::test(flavor = "multi_thread")]
async fn headers_of_message_rows_travel_with_http_requests() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = database.connect("postgres").await;
    owner.batch_execute("GRANT SELECT ON outbox.message TO relay").await.unwrap();
    receiver.answer(|_| (200, Duration::ZERO));
    let relay = receiver.relay("r", "").replace("public.bookings", "outbox.message");
    let relay = format!("{relay}headers = {{ \"x-fixed\" = \"configured\" }}\n");
    let process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    line(&process, "relay ready").await;
    owner
        .batch_execute(
            "INSERT INTO outbox.message (topic, payload, headers) VALUES ('t', 'p', '{\"X-Event\": \"Paid\", \"x-n\": 1, \
             \"X-Fixed\": \"row\", \"Idempotency-Key\": \"row\", \"host\": \"row\", \"x-null\": null}'), ('t', 'p', NULL)",
        )
        .await
        .unwrap();
    eventually(PATIENCE, async || receiver.requests().len() == 2).await;
    let requests = receiver.requests();
    let header = |n: usize, name: &str| requests[n].headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header(0, "x-event").as_deref(), Some("Paid"));
    assert_eq!(header(0, "x-n").as_deref(), Some("1"));
    assert_eq!(header(0, "x-fixed").as_deref(), Some("configured"));
    assert_eq!(header(0, "idempotency-key").as_deref(), Some("r/1"));
    assert_eq!((header(0, "x-null"), header(1, "x-event")), (None, None));
    assert!(header(0, "host").is_some_and(|host| host.starts_with("127.0.0.1")));
    for headers in ["[1]", r#"{"a b": "x"}"#, r#"{"x-break": "a\nb"}"#] {
        owner
            .execute(
                "INSERT INTO outbox.message (topic, payload, headers) VALUES ('t', 'p', $1::text::jsonb)",
                &[&headers],
            )
            .await
            .unwrap();
        let (id, error) = halted(&owner, "r").await;
        assert_eq!(
            (&error["code"], &error["class"]),
            (&"invalid_header".into(), &"poison".into()),
            "{headers} {error}"
        );
        owner.execute("UPDATE outbox.message SET headers = NULL WHERE id = $1::text::bigint", &[&id]).await.unwrap();
        let (code, ..) = outbox_relay(&toml(&database, "relay", None, &relay), &["cursor", "resume", "r"]).await;
        assert_eq!(code, Some(0));
        eventually(PATIENCE, async || !is_halted(&owner, "r").await).await;
    }
}
