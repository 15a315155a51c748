//! The byte budget bounds memory: rows pass through, they do not gather.

use rdkafka::message::Message;

use super::{PATIENT, fill, holds, is_of, peak, replica, topic};
use crate::poison::limit;
use crate::support::records::each;
use crate::support::{CLOCK, PATIENCE, bookings, broker, database, eventually, kafka_relay, outbox_relay, toml};

const ROWS: i32 = 400;
/// Turns are made of 8 MiB, and of up to twice as much; this is less than what passes through.
const BOUND: u64 = 300;

// Guarantee: delivery.memory
#[tokio::test(flavor = "multi_thread")]
async fn four_hundred_rows_of_a_mebibyte_pass_through_a_relay_that_never_holds_them_all() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, "1024 * 1024", ROWS).await;
    let topic = topic("budget", &[("max.message.bytes", "2000000")]).await;
    let replica = replica(&database, &(kafka_relay("budget", &topic, "") + PATIENT)).await;
    let servers = broker().await.bootstrap_servers();
    holds(&servers, &topic, i64::from(ROWS)).await;
    let peak = peak(&replica);
    println!("the relay had at most {peak} MiB");
    let seen = each(&servers, &topic, |message| {
        let row = message.offset() + 1;
        is_of(message.payload().unwrap(), &row.to_string(), 1 << 20)
    });
    assert_eq!(seen.await, vec![true; usize::try_from(ROWS).unwrap()], "each once, whole, in order");
    assert!(peak < BOUND, "the relay had {peak} MiB");
}

// Guarantee: delivery.memory
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_that_are_sent_again_together_pass_through_memory_a_few_at_a_time() {
    const LETTERS: i32 = 20;
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, "16 * 1024 * 1024", LETTERS).await;
    let topic = topic("again", &[]).await;
    let relays = kafka_relay("again", &topic, "on_poison = \"dead_letter\"") + PATIENT;
    let first = replica(&database, &relays).await;
    let buried = async || owner.query("SELECT id::text FROM outbox.dead_letter ORDER BY id", &[]).await.unwrap();
    let letters = usize::try_from(LETTERS).unwrap();
    eventually(PATIENCE * 12, async || buried().await.len() == letters).await;
    drop(first);

    limit(&topic, "17000000").await;
    let servers = broker().await.bootstrap_servers();
    let mut arguments = vec!["dead-letter".to_owned(), "redrive".to_owned(), "--yes".to_owned()];
    arguments.extend(buried().await.iter().map(|row| row.get(0)));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (code, _, log) = outbox_relay(&toml(&database, "relay", Some(&servers), &relays), &arguments).await;
    assert_eq!(code, Some(0), "{log}");
    let second = replica(&database, &relays).await;
    holds(&servers, &topic, i64::from(LETTERS)).await;
    let peak = peak(&second);
    println!("the relay had at most {peak} MiB");
    let seen = each(&servers, &topic, |message| {
        let row = message.offset() + 1;
        is_of(message.payload().unwrap(), &row.to_string(), 16 << 20)
    });
    assert_eq!(seen.await, vec![true; letters], "each once, whole, in order");
    assert!(peak < BOUND, "the relay had {peak} MiB");
}
