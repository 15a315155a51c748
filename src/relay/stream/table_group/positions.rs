//! Positions of a group's cursors that lie where no turn leaves one.

use super::Group;
use crate::cursor;
use crate::database::Session;
use crate::relay::engine::deadline::within;
use crate::relay::stream::beyond_clock;
use crate::relay::stream::poll::Look;
use crate::relay::stream::report;

impl Group {
    /// Halts the relays whose positions were set beyond the clock by anything but an operator's command: see [`beyond_clock`]. Costs a
    /// statement only where one is there. What cannot be asked is asked at the next look.
    pub(super) async fn judge_positions(&mut self, session: &Session, look: &Look) {
        let clock = look.sighting.horizon.observed_at;
        for member in &mut self.members {
            let (Some(ready), Some(standing)) = (member.ready.clone(), look.standing(&member.config.name)) else {
                continue;
            };
            let Some(position) = beyond_clock::beyond(standing, clock) else { continue };
            let is_known = member.ahead.as_ref() == Some(position);
            if is_known || standing.change || ready.stands_still(standing.halted.as_ref()) {
                continue;
            }
            let is_configured = beyond_clock::is_configured(ready.config.start, position);
            let moved = match is_configured {
                true => Ok(true),
                false => within(&self.engine, cursor::has_moved_to(session, position.created_at)).await,
            };
            match moved {
                Ok(true) => {
                    member.ahead = Some(position.clone());
                    continue;
                }
                Ok(false) => {}
                // The other relays of the table do not wait for it.
                Err(error) => {
                    let cursor = &ready.config.name;
                    tracing::warn!(cursor, %error, "cannot find out who set a position beyond the clock; retrying");
                    continue;
                }
            }
            let failure = beyond_clock::failure(&ready, standing, position, clock);
            report::halt(&self.engine, &ready, &failure, None).await;
        }
    }
}
