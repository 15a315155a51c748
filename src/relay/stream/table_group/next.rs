//! What follows for a group when a relay's turns have ended.

use std::collections::HashMap;
use std::time::Instant;

use tokio::task::{Id, JoinError, JoinSet};

use super::Group;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::stream::member::{Member, Prepared};
use crate::relay::stream::worker::{Ended, Next};

impl Group {
    /// Waits until no relay's checks run, and keeps what they found for the next look. Those that have ended before it is given
    /// up are kept, too.
    pub(super) async fn checked(
        preparing: &mut JoinSet<Prepared>,
        tasks: &mut HashMap<Id, usize>,
        members: &mut [Member],
    ) {
        while let Some(done) = preparing.join_next_with_id().await {
            let (id, prepared) = match done {
                Ok((id, prepared)) => (id, Ok(prepared)),
                Err(error) => (error.id(), Err(error)),
            };
            if let Some(member) = tasks.remove(&id).and_then(|index| members.get_mut(index)) {
                member.checked(prepared);
            }
        }
    }

    /// Takes a relay's turns' end in.
    pub(super) fn finished(&mut self, done: Result<(Id, Ended), JoinError>) {
        let (id, outcome) = match done {
            Ok((id, outcome)) => (id, Ok(outcome)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(member) = self.tasks.remove(&id).and_then(|index| self.members.get_mut(index)) else { return };
        member.busy = false;
        let begun = std::mem::take(&mut member.begins);
        // Figures are taken at full looks: where each began with a row, none would ever show that nothing waits.
        let sampled = member.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE);
        let (mut moved, mut arrived) = (false, false);
        let next = match outcome {
            Ok(ended) => {
                moved = ended.moved;
                arrived = self.rest_after.as_ref().is_some_and(|rest| rest.has_arrived(ended.stands_at.as_ref()));
                (member.backoff, member.learned) = (ended.backoff, ended.learned);
                ended.next
            }
            Err(error) => {
                let pause = member.backoff.failed(fastrand::f64());
                tracing::error!(cursor = member.config.name, %error, ?pause, "turn panicked: its connections are closed");
                Next::After(pause)
            }
        };
        // It has read to the end, under the tree that it began with.
        if next == Next::Quiet && member.checking {
            member.unchecked = false;
        }
        if moved {
            let now = Instant::now();
            self.arrivals.came_until(now);
            member.standby.moved(now);
        }
        match next {
            Next::Quiet => {}
            Next::Look => member.quiet = None,
            Next::Halted => {
                member.quiet = None;
                member.halted = true;
                // A halt that could not be recorded must not become a storm of tries.
                member.not_before = Instant::now() + member.backoff.failed(fastrand::f64());
            }
            Next::After(pause) => {
                member.quiet = None;
                member.not_before = Instant::now() + pause;
            }
            Next::Pause(pause) => {
                member.quiet = None;
                member.paces(pause);
            }
            Next::Catalogue => {
                member.quiet = None;
                self.shape_read = None;
            }
            Next::Recheck(pause) => {
                member.quiet = None;
                member.ready = None;
                member.not_before = Instant::now() + pause;
            }
        }
        self.rests_after(begun && arrived && sampled);
    }

    /// Rests when the turns that the last full look began have all ended as they should.
    fn rests_after(&mut self, arrived: bool) {
        if !arrived {
            self.rest_after = None;
        } else if self.members.iter().all(|member| !member.begins) {
            (self.rest, self.arrived) = (self.rest_after.take(), true);
        }
    }
}
