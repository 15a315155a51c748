//! Many relays that fail write a bounded log.

use rustix::process::Signal;

use crate::support::gateway::{Gateway, sms_relay};
use crate::support::outside::lines;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

// Guarantee: observe.log-limit
#[tokio::test(flavor = "multi_thread")]
async fn failing_relays_together_log_bounded_lines() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text").await.unwrap();
    let relays: String = (0..40).map(|number| sms_relay(&format!("sms{number}"), &gateway, "")).collect();
    let relays = relays.replace("start = ", "on_poison = \"dead_letter\"\nstart = ");
    owner.batch_execute("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 15)").await.unwrap();
    let begun = std::time::Instant::now();
    let mut process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    let all = "SELECT count(*) = 600 FROM outbox.dead_letter";
    eventually(PATIENCE * 6, async || owner.query_one(all, &[]).await.unwrap().get(0)).await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    let lines = lines(&process);
    let event = "row dead-lettered";
    let logged = lines.iter().filter(|line| line["message"] == event).count() as u64;
    assert!(logged <= 200 + begun.elapsed().as_secs() + 1, "{logged} lines");
    let reports = lines.iter().filter(|line| line["message"] == "log lines withheld: the event repeats");
    let withheld: u64 = reports.filter(|line| line["event"] == event).map(|line| line["lines"].as_u64().unwrap()).sum();
    assert_eq!(logged + withheld, 600, "what is not logged is counted");
}
