//! Jobs on their way.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};

/// How long the end of one send waits for others'.
const TOGETHER: Duration = Duration::from_millis(2);

/// Sends that have begun; each answers its attempts.
#[derive(Debug)]
pub(super) struct InFlight<A> {
    relay: String,
    sends: JoinSet<Vec<A>>,
    /// How many jobs each of them has.
    jobs: HashMap<Id, usize>,
}

impl<A: Send + 'static> InFlight<A> {
    pub(super) fn new(relay: &str) -> Self {
        Self { relay: relay.to_owned(), sends: JoinSet::new(), jobs: HashMap::new() }
    }

    /// Begins to send so many jobs.
    pub(super) fn spawn(&mut self, jobs: usize, send: impl Future<Output = Vec<A>> + Send + 'static) {
        let task = self.sends.spawn(send);
        self.jobs.insert(task.id(), jobs);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sends.is_empty()
    }

    /// How many jobs are on their way.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.values().sum()
    }

    /// Waits for the pause, or for sends that end; adds their attempts. Answers how many sends have panicked.
    pub(super) async fn wait(&mut self, pause: Duration, ended: &mut Vec<A>) -> usize {
        let mut panicked = 0;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Some(done) = self.sends.join_next_with_id() => {
                panicked += self.ended(done, ended);
                // Others that were begun together end about now: one record and one claim for all of them.
                if !self.sends.is_empty() {
                    tokio::time::sleep(TOGETHER).await;
                }
            }
        }
        while let Some(done) = self.sends.try_join_next_with_id() {
            panicked += self.ended(done, ended);
        }
        panicked
    }

    fn ended(&mut self, done: Result<(Id, Vec<A>), JoinError>, ended: &mut Vec<A>) -> usize {
        match done {
            Ok((id, attempts)) => {
                self.jobs.remove(&id);
                ended.extend(attempts);
                0
            }
            Err(error) => {
                let jobs = self.jobs.remove(&error.id());
                tracing::error!(cursor = self.relay, jobs, %error, "send panicked; its claims expire");
                1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: pending.runner
    #[tokio::test]
    async fn panic_frees_its_own_room_only() {
        let (mut in_flight, mut ended) = (InFlight::new("jobs"), Vec::new());
        in_flight.spawn(3, async { panic!("a sink that panics") });
        let (accept, accepted) = tokio::sync::oneshot::channel::<()>();
        in_flight.spawn(2, async {
            accepted.await.expect("the test sends");
            vec!["a", "b"]
        });
        let panicked = in_flight.wait(Duration::from_secs(10), &mut ended).await;
        assert_eq!((panicked, in_flight.jobs(), ended.len()), (1, 2, 0));
        accept.send(()).expect("the job waits");
        let panicked = in_flight.wait(Duration::from_secs(10), &mut ended).await;
        assert_eq!((panicked, in_flight.jobs(), in_flight.is_empty()), (0, 0, true));
        assert_eq!(ended, ["a", "b"]);
    }

    #[tokio::test]
    async fn wait_ends_with_the_pause_and_keeps_what_is_on_its_way() {
        let (mut in_flight, mut ended) = (InFlight::new("jobs"), Vec::new());
        in_flight.spawn(1, std::future::pending::<Vec<&str>>());
        in_flight.wait(Duration::from_millis(20), &mut ended).await;
        assert_eq!((in_flight.jobs(), ended.len()), (1, 0));
    }
}
