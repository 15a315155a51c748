//! Writing a change, and waiting until it is carried out.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::subject::Subject;
use super::unknown;
use crate::cli::confirm::operator;
use crate::cli::output::{complain, print};
use crate::config::parse_duration;
use crate::cursor::{Fate, Order, fate, order};
use crate::database::Session;
use crate::relay::engine::replicas::running;

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

/// How the waiting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Waited {
    /// Carried out.
    Done { moved: bool },
    /// Nobody waited, or nobody runs who could do it: the next turn does.
    Stored(&'static str),
    /// Replicas run, and none has done it in time.
    Late,
    /// Another change took its place.
    Replaced,
}

impl Wait {
    /// Writes the change, waits for it, and says how it ended. `said` is what to say once it was carried out, and whether
    /// the cursor has moved by it is its argument.
    pub(super) async fn for_change(
        self,
        subject: &mut Subject,
        change: &Order<'_>,
        (verb, detail): (&str, &serde_json::Value),
        said: impl FnOnce(bool) -> anyhow::Result<String>,
    ) -> anyhow::Result<ExitCode> {
        let name = subject.relay.name.as_str();
        let made = order(&mut subject.session, name, change, (verb, &operator(), detail)).await?;
        let number = made.ok_or_else(|| unknown(name))?;
        let said = match self.until(&subject.session, name, number).await? {
            Waited::Done { moved } => said(moved)?,
            Waited::Stored(why) => why.to_owned(),
            Waited::Late => return Ok(late(name)),
            Waited::Replaced => anyhow::bail!(
                "{name}: nothing was done: before a turn carried this change out, another one took its place. \
                 `outbox-relay cursor show {name}` tells where the cursor stands"
            ),
        };
        print(&format!("{name}: {said}\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Waits for the change of this number.
    async fn until(self, session: &Session, name: &str, number: i64) -> anyhow::Result<Waited> {
        let stored = "the change is stored, and the cursor's next turn applies it";
        if self.no_wait {
            return Ok(Waited::Stored(stored));
        }
        if running(session).await?.is_empty() {
            return Ok(Waited::Stored("no replica is running: the change is stored, and the next turn applies it"));
        }
        let begun = Instant::now();
        loop {
            match fate(session, name, number).await? {
                Fate::Waiting if begun.elapsed() >= self.timeout => return Ok(Waited::Late),
                Fate::Waiting => tokio::time::sleep(LOOK).await,
                Fate::Moved => return Ok(Waited::Done { moved: true }),
                Fate::Stayed => return Ok(Waited::Done { moved: false }),
                Fate::Replaced => return Ok(Waited::Replaced),
            }
        }
    }
}

/// Replicas run, and none has carried the change out.
fn late(name: &str) -> ExitCode {
    complain(format_args!(
        "{name}: no replica has carried it out in time. It is stored and will be; `outbox-relay cursor why {name}` tells \
         what holds it up"
    ));
    ExitCode::from(crate::cli::THRESHOLD)
}
