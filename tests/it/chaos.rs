//! Sixteen writers, a Kafka relay and an SMS relay on one table, three replicas whose holders are killed, stopped and
//! terminated at random for a minute: every committed id arrives at both, first deliveries in order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use outbox_testkit::bookings::{self, Load, Table, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::delivery::{Committed, Delivery, Report, Verdict, check, verdict};
use outbox_testkit::gateway::{ACCOUNT_SID, AUTH_TOKEN, Gateway};
use rustix::process::Signal;

use crate::support::{PATIENCE, Process, broker, database, eventually, kafka_relay, toml, unique};

const MINUTE: Duration = Duration::from_secs(60);

fn sms(committed: &Committed, gateway: &Gateway) -> Report {
    let delivery = |body: &str| Delivery { id: body.split(' ').nth(1).expect("an id").to_owned(), created_at: None };
    let accepted = gateway.accepted().iter().map(|sms| delivery(&sms.body)).collect();
    check(committed, &BTreeMap::from([(0, accepted)]), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_of_killed_stopped_and_terminated_holders_loses_nothing_and_keeps_order() {
    let (database, broker, gateway) = (database().await, broker().await, Gateway::start().await.unwrap());
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let (servers, topic) = (broker.bootstrap_servers(), unique("chaos"));
    broker.create_topic(&topic, 3, &[]).await.unwrap();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let relays = format!(
        "{}[[relay]]\nname = \"booking_sms\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
         [relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"{}\"\naccount_sid = \"{ACCOUNT_SID}\"\n\
         auth_token = \"{AUTH_TOKEN}\"\nfrom = \"+15550000000\"\nto = \"{{{{ phone }}}}\"\n\
         text = \"Booking {{{{ id }}}} confirmed\"\n",
        kafka_relay("booking_events", &topic, ""),
        gateway.base_url(),
    );
    let toml = toml(&database, "relay", Some(&servers), &relays);
    let start = |n: usize| Process::spawn(&toml, &["run", "--replica-id", &format!("r{n}")]);
    let mut replicas: Vec<Process> = (0..3).map(start).collect();
    let load = Load { writers: 16, rows_per_second: Some(60.0), payload: 100..=4_000, ..Load::default() };
    let writers = Writers::start(&database.url("app"), load).await.unwrap();

    let (begun, mut random, mut done) = (Instant::now(), fastrand::Rng::with_seed(3), [0; 3]);
    while begun.elapsed() < MINUTE {
        let before = consumer.count();
        eventually(PATIENCE * 4, async || consumer.count() > before + 40).await;
        let index = random.usize(0..3);
        let signal = random.usize(0..3);
        done[signal] += 1;
        let signal = [Signal::KILL, Signal::TERM, Signal::STOP][signal];
        replicas[index].signal(signal);
        if signal == Signal::STOP {
            let before = consumer.count();
            eventually(PATIENCE * 4, async || consumer.count() > before).await;
            replicas[index].signal(Signal::CONT);
        } else {
            replicas[index].wait().await;
            replicas[index] = start(index);
        }
    }
    println!("killed {}, terminated {}, stopped {}", done[0], done[1], done[2]);
    let written = writers.stop().await.unwrap();
    let committed = bookings::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    let kafka = || {
        let (streams, gaps) = consumer.look(|received| (received.streams(), received.gaps.clone()));
        check(&committed, &streams, &gaps)
    };
    eventually(PATIENCE * 12, async || {
        kafka().distinct == committed.len() && sms(&committed, &gateway).distinct == committed.len()
    })
    .await;
    let (kafka, sms) = (kafka(), sms(&committed, &gateway));
    println!("{} rows; duplicates: Kafka {}, SMS {}", committed.len(), kafka.duplicates(), sms.duplicates());
    assert_eq!(verdict(&committed, &[&kafka, &sms], true), Verdict::Pass, "{kafka:?}\n{sms:?}");
}
