//! Replicas killed, ended, stopped for a while, and without their sessions.

use std::time::Duration;

use fastrand::Rng;
use outbox_testkit::watchdog::Signal;

use crate::soak::faults::{OF_RELAYS, end_sessions};
use crate::soak::journal::Journal;
use crate::soak::kinds::Fault;
use crate::soak::replicas::Replicas;
use crate::soak::stage::Access;

/// What is done; the more often it is here, the more often.
const FAULTS: [Fault; 8] =
    [Fault::Kill, Fault::Kill, Fault::Kill, Fault::Kill, Fault::Term, Fault::Term, Fault::Stop, Fault::Sessions];
/// Past the time after which PostgreSQL ends the session of a stopped holder, for some of the deadlines that are drawn.
const STOPPED: u64 = 4_000;
/// The longest pause after each, in milliseconds: the load goes on.
const PAUSE: u64 = 900;

/// Does it once.
pub async fn kill(access: &Access, replicas: &mut Replicas, journal: &Journal, random: &mut Rng) -> anyhow::Result<()> {
    let whom = random.usize(0..replicas.len());
    let fault = FAULTS[random.usize(0..FAULTS.len())];
    let mut what = format!("replica {}", whom + 1);
    match fault {
        Fault::Term => replicas.end(whom, Signal::TERM).await?,
        Fault::Stop => {
            replicas.freeze(whom, true)?;
            tokio::time::sleep(Duration::from_millis(random.u64(200..STOPPED))).await;
            replicas.freeze(whom, false)?;
        }
        Fault::Sessions => what = end_sessions(access, random, OF_RELAYS).await?,
        _ => replicas.end(whom, Signal::KILL).await?,
    }
    journal.count(fault.word(), what);
    tokio::time::sleep(Duration::from_millis(random.u64(100..PAUSE))).await;
    Ok(())
}
