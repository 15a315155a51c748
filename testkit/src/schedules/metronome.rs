//! How late this machine itself is: something that asks the database the simplest question at even steps.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;

use outbox_relay::position::Timestamp;

const STEP: Duration = Duration::from_millis(50);

/// One of its questions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    pub(super) due: Timestamp,
    /// How long after that the answer was there.
    pub(super) late: Duration,
}

/// At work until it is asked. Dropped, it stops at once.
#[derive(Debug)]
pub(super) struct Metronome {
    stop: tokio::sync::oneshot::Sender<()>,
    beats: JoinHandle<anyhow::Result<Vec<Beat>>>,
}

impl Metronome {
    pub(super) fn start(client: Client) -> Self {
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let beats = tokio::spawn(async move {
            let (mut beats, mut due) = (Vec::new(), crate::now());
            loop {
                tokio::select! {
                    _ = &mut stopped => return Ok(beats),
                    () = tokio::time::sleep(due.since(crate::now())) => {}
                }
                client.simple_query("SELECT 1").await?;
                let now = crate::now();
                beats.push(Beat { due, late: now.since(due) });
                while due <= now {
                    due = due.plus(STEP);
                }
            }
        });
        Self { stop, beats }
    }

    /// Ends it; all that it has seen.
    pub(super) async fn stop(self) -> anyhow::Result<Vec<Beat>> {
        drop(self.stop);
        self.beats.await?
    }
}
