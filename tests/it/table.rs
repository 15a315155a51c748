//! README.md and docs/howto/table.md, word for word: an application's own table to Kafka.

use crate::support::pages::{blocks, connected, page};
use crate::support::{PATIENCE, Process, broker, database, eventually, outbox_relay, records, unique};

const TABLE: &str = "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                     created_at timestamptz DEFAULT now(), customer text NOT NULL, at timestamptz NOT NULL, phone text)";

/// The findings that a report shows: code and level.
fn findings(report: &str) -> Vec<(String, String)> {
    let lines = report.lines().filter(|line| line.starts_with("  ") && !line.trim_start().starts_with("->"));
    let words = lines.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words.filter(|words| words.len() > 2).map(|words| (words[1].clone(), words[0].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn guide_to_own_table_publishes_its_rows() {
    let (page, database, broker) = (page("table"), database().await, broker().await);
    let owner = database.connect("postgres").await;
    owner.batch_execute(TABLE).await.unwrap();
    let (topic, servers) = (unique("bookings"), broker.bootstrap_servers());
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let [configuration] = blocks(&page, "toml")[..] else { panic!("one configuration") };
    let configuration = configuration.replace("\"relay-password\"", "\"/run/secrets/postgres\"");
    let of = |user: &str| {
        let pairs = [("127.0.0.1:9092", servers.as_str()), ("topic = \"bookings\"", &format!("topic = \"{topic}\""))];
        let text = pairs.iter().fold(connected(&configuration, &database.url(user)), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        format!("{text}\n[admin]\nlisten = \"127.0.0.1:0\"\n")
    };
    let (code, _, log) = outbox_relay(&of("postgres"), &["migrate", "up", "--relay-role", "relay"]).await;
    assert_eq!(code, Some(0), "{log}");

    let (code, out, log) = outbox_relay(&of("relay"), &["check"]).await;
    assert_eq!(code, Some(3), "{out}{log}");
    let shown = page.split("```").find(|block| block.trim_start().starts_with("booking_events\n")).expect("a report");
    let found = findings(&out);
    assert!(!findings(shown).is_empty() && findings(shown).iter().all(|one| found.contains(one)), "{shown}{out}");
    let [statements] = blocks(&page, "sql")[..] else { panic!("one block of SQL") };
    for statement in statements.split_inclusive(';').filter(|statement| statement.contains(';')) {
        // One at a time: CREATE INDEX CONCURRENTLY refuses to be part of several.
        owner.batch_execute(statement).await.unwrap();
    }
    let (code, out, log) = outbox_relay(&of("relay"), &["check"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.contains("created_at_proven"), "{out}");

    let _replica = Process::spawn(&of("relay"), &["run"]);
    let insert = page.split("-c \"").nth(1).and_then(|rest| rest.split('"').next()).expect("an INSERT");
    owner.batch_execute(insert).await.unwrap();
    eventually(PATIENCE * 2, || async { records(&servers, &topic).await.len() == 1 }).await;
    let record = records(&servers, &topic).await.remove(0);
    assert_eq!(record.key.as_deref(), Some("c1"));
    assert!(record.text().starts_with(r#"{"id":1,"customer":"c1","at":""#), "{}", record.text());
    assert_eq!(record.header("relay"), Some("booking_events"));
}

#[tokio::test(flavor = "multi_thread")]
async fn readme_configuration_is_the_guides_with_defaults() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let page = page("table");
    let [short] = blocks(&readme, "toml")[..] else { panic!("one configuration") };
    let lines = short.lines().filter(|line| !line.is_empty()).count();
    assert_eq!(lines, 12, "README.md promises twelve lines");
    let [long] = blocks(&page, "toml")[..] else { panic!("one configuration") };
    let show = async |toml: &str| {
        let (code, out, log) = outbox_relay(toml, &["config", "show", "--redacted"]).await;
        assert_eq!(code, Some(0), "{log}");
        out
    };
    let password = "\"/run/secrets/postgres\"";
    assert_eq!(show(short).await, show(&long.replace("\"relay-password\"", password)).await);
}
