//! Work of a relay: whether there is something for a turn.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::{Member, Quiet};
use crate::cursor::Standing;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::changed_order;
use crate::relay::stream::idle;
use crate::relay::stream::poll::Look;
use crate::relay::stream::shards;

impl Member {
    /// Whether nothing is to be done before the newest row or the cursor's standing changes.
    pub(in crate::relay) fn rests(&self, look: &Look) -> bool {
        let Some(ready) = &self.ready else { return false };
        let Some(standing) = look.standing(&self.config.name) else { return false };
        // Rows that wait to be sent again are no reason for a turn before their time, and their time comes.
        if self.busy || standing.change || standing.in_flight || standing.redrive && self.learned.resends_wait() {
            return false;
        }
        // A short memory ends before the group would look again.
        if look.is_behind(standing) && self.quiet_for(standing, look).is_some_and(|quiet| quiet.lasts < idle::FULL) {
            return false;
        }
        let stands = standing.paused || ready.stands_still(standing.halted.as_ref());
        stands || !self.is_wanted(ready, standing, look)
    }

    /// The memory of a turn that found nothing, when it is of what the look shows.
    fn quiet_for(&self, standing: &Standing, look: &Look) -> Option<&Quiet> {
        let (position, newest) = (standing.position.as_ref(), look.newest_for(standing));
        self.quiet.as_ref().filter(|quiet| quiet.is_of(position, newest))
    }

    /// Tells the turn that is running whether it is still wanted.
    pub(in crate::relay) fn tell(&self, ready: &PreparedStream, standing: &Standing, look: &Look) {
        let moves =
            changed_order::goes_back(standing, &ready.shape) || shards::follows(ready, standing, look).is_some();
        let moves = moves || self.unchecked;
        let late = standing.redrive || look.late.contains(&standing.name);
        let wanted = standing.change || standing.in_flight || late || moves || look.is_behind(standing);
        self.needless.store(!wanted, Relaxed);
    }

    /// Whether there is something for a turn.
    pub(in crate::relay) fn is_wanted(&self, ready: &PreparedStream, standing: &Standing, look: &Look) -> bool {
        let quiet = self.quiet_for(standing, look).is_some_and(|quiet| quiet.until > Instant::now());
        let unread = look.is_behind(standing) && !quiet;
        let back = changed_order::goes_back(standing, &ready.shape);
        let redrives = standing.redrive && !self.learned.resends_wait();
        let late = redrives || look.late.contains(&standing.name);
        late || unread || back || self.unchecked || shards::follows(ready, standing, look).is_some()
    }

    /// Whether a turn is begun for nothing but rows up to the table's newest.
    pub(in crate::relay) fn begins_plainly(&self, ready: &PreparedStream, standing: &Standing, look: &Look) -> bool {
        let other = look.late.contains(&standing.name)
            || standing.change
            || standing.redrive
            || standing.in_flight
            || self.unchecked;
        !other && ready.config.shard.is_none() && !changed_order::goes_back(standing, &ready.shape)
    }
}
