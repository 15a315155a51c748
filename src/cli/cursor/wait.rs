//! Waiting until a wish is carried out.

use std::time::{Duration, Instant};

use crate::config::parse_duration;
use crate::cursor::{Fate, fate};
use crate::database::Session;
use crate::relay::replicas::running;

const LOOK: Duration = Duration::from_millis(50);

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct Wait {
    /// How long to wait until a replica has carried it out
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Do not wait: the next turn carries it out
    #[arg(long, conflicts_with = "timeout")]
    pub no_wait: bool,
}

/// What came of the waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Carried out.
    Done(Fate),
    /// Nobody waited, or nobody runs who could do it: the next turn does.
    Stored(&'static str),
    /// Replicas run, and none has done it in time.
    Late,
}

impl Wait {
    /// Waits for the wish of this number.
    pub(super) async fn until(self, session: &Session, name: &str, number: i64) -> anyhow::Result<Waited> {
        let stored = "the wish is stored, and the cursor's next turn carries it out";
        if self.no_wait {
            return Ok(Waited::Stored(stored));
        }
        if running(session).await?.is_empty() {
            return Ok(Waited::Stored("no replica is running: the wish is stored, and the next turn carries it out"));
        }
        let begun = Instant::now();
        loop {
            match fate(session, name, number).await? {
                Fate::Waiting if begun.elapsed() >= self.timeout => return Ok(Waited::Late),
                Fate::Waiting => tokio::time::sleep(LOOK).await,
                fate @ (Fate::Moved | Fate::Stayed) => return Ok(Waited::Done(fate)),
            }
        }
    }
}
