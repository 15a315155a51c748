//! Due work, in the two systems that it was made for: reminders at least once, welcome messages at most once.

use std::collections::HashMap;

use outbox_testkit::provider::Received;

mod locks;
mod pages;
mod reminders;
mod welcome;

/// Decides what is drawn at random; a failed test prints it. `OUTBOX_RELAY_SEED` gives the same draw again.
fn seed() -> u64 {
    let seed = std::env::var("OUTBOX_RELAY_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("OUTBOX_RELAY_SEED={seed}");
    seed
}

/// How often each of them came.
fn times<'a>(of: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut times = HashMap::new();
    for one in of {
        *times.entry(one).or_default() += 1;
    }
    times
}

/// The idempotency key without the relay and the due instant.
fn key(received: &Received) -> &str {
    received.request.row().split_once('/').expect("<relay>/<key>/<due instant>").1
}
