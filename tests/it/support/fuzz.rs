//! What the tests with random bytes share. `make fuzz` gives them minutes and another seed each time.

use std::time::Duration;

use super::Process;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect(variable))
}

/// `OUTBOX_RELAY_FUZZ_SEED`, else the same in every run.
pub fn seed() -> u64 {
    number("OUTBOX_RELAY_FUZZ_SEED").unwrap_or(20)
}

/// `OUTBOX_RELAY_FUZZ_SECONDS`, else a few seconds.
pub fn lasts() -> Duration {
    Duration::from_secs(number("OUTBOX_RELAY_FUZZ_SECONDS").unwrap_or(8))
}

/// Whether it runs: one that has ended and was not waited for is still in the list of processes.
pub fn lives(process: &Process) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
