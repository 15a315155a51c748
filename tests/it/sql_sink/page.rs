//! docs/howto/read-model.md, word for word, under load and kills.

use outbox_testkit::bookings::Table;
use rustix::process::Signal;

use super::{Fleet, counted, differences};
use crate::support::outside::{finding, json};
use crate::support::pages::{commands, connected, flush_blocks as blocks};
use crate::support::{PATIENCE, database, eventually, outbox_relay};

const VIEW: &str = "app.bookings_by_day";
const DIRECT: &str = "SELECT (created_at AT TIME ZONE 'UTC')::date, count(*) FROM public.bookings GROUP BY 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_read_model_is_rebuilt_under_load_and_kills_while_the_old_one_serves() {
    let page = std::fs::read_to_string("docs/howto/read-model.md").unwrap();
    let [_, setup, fresh, swap] = &blocks(&page, "sql")[..] else { panic!("four blocks of SQL") };
    let [toml] = &blocks(&page, "toml")[..] else { panic!("a page has one configuration") };
    let [pause, seek, resume, status] = &commands(&page)[..] else { panic!("four commands") };
    let (old, new) = ("app.bookings_by_day_1", "app.bookings_by_day_2");

    let database = database().await;
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let history = "INSERT INTO public.bookings (created_at, customer, region, phone, payload) \
                   SELECT now() - n * interval '97 s', 'c', 'r', 'p', '' FROM generate_series(1, 8000) AS n";
    owner.batch_execute(history).await.unwrap();
    for statement in setup.split_inclusive(';').filter(|statement| !statement.trim().is_empty()) {
        // One at a time: CREATE INDEX CONCURRENTLY refuses to be part of several.
        owner.batch_execute(statement).await.unwrap();
    }
    assert!(toml.contains(old), "{toml}");
    let toml = connected(toml, &database.url("relay"));
    let toml = format!("{toml}\n[admin]\nlisten = \"127.0.0.1:0\"\n");
    let rebuilt = toml.replace(old, new);
    let does = async |toml: &str, command: &[String]| {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let (code, out, log) = outbox_relay(toml, &words).await;
        (code == Some(0), format!("{words:?}: {out}{log}"))
    };
    let (_, out, log) = outbox_relay(&toml, &["check", "-o", "json"]).await;
    let document = json(&out);
    let findings = document["findings"].as_array().unwrap().iter().filter(|one| one["relay"] == "bookings_by_day");
    let wrong: Vec<_> = findings.filter(|one| one["level"] == "error").collect();
    assert!(wrong.is_empty() && finding(&document, "statement").is_some(), "{out}{log}");

    // All rows of now change one row of the model, whose cost grows with each of a turn: no faster than any machine catches up with.
    let mut fleet = Fleet::start(database, owner, toml.clone(), 2, 200.0).await;
    for _ in 0..3 {
        fleet.kill(VIEW).await;
    }
    // The reason: it is wrong.
    fleet.owner.batch_execute("UPDATE app.bookings_by_day_1 SET bookings = bookings + 1000000").await.unwrap();
    let (well, said) = does(&toml, pause).await;
    assert!(well, "{said}");
    fleet.owner.batch_execute(fresh).await.unwrap();
    fleet.toml.clone_from(&rebuilt);
    for n in 0..fleet.replicas.len() {
        fleet.replicas[n].signal(Signal::TERM);
        assert_eq!(fleet.replicas[n].wait().await, Some(0), "{}", fleet.replicas[n].log());
        fleet.replicas[n] = Fleet::replica(&rebuilt, n);
    }
    let served = counted(&fleet.owner, VIEW).await;
    let patiently = [&seek[..], &["--timeout".to_owned(), "40s".to_owned()]].concat();
    for command in [&patiently, resume] {
        let (well, said) = does(&rebuilt, command).await;
        assert!(well, "{said}");
    }
    for _ in 0..14 {
        fleet.kill(new).await;
        assert_eq!(counted(&fleet.owner, VIEW).await, served, "the old one serves, as it was");
    }
    eventually(PATIENCE * 4, async || {
        let (well, said) = does(&rebuilt, status).await;
        println!("{said}");
        well
    })
    .await;
    fleet.owner.batch_execute(swap).await.unwrap();
    for _ in 0..3 {
        fleet.kill(VIEW).await;
    }
    let (_database, owner, rows) = fleet.settle(VIEW).await;
    println!("{rows} rows, 20 kills");
    assert_eq!(differences(&owner, VIEW, DIRECT).await, 0);
    assert!(counted(&owner, old).await > 1_000_000, "the old one is as it was");
}
