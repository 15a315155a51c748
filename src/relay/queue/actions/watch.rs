//! Who watched the schedules of a relay, and when: an occurrence was missed when no replica did at its instant.
//!
//! Each process writes when its watch begins and ends, and that it goes on while something is due that it cannot plan, for
//! example because an application's edit is not committed. Nothing is written while occurrences are planned in time: then a lock of
//! its session says that it is there.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::cursor::liveness::{self, Second};
use crate::database::{Error, Session};
use crate::jobs::schedules::First;
use crate::jobs::watches::{self, Span, UNBROKEN, WatchingProcess};
use crate::position::Timestamp;
use crate::relay::engine::Engine;

/// What is no later than this was not missed, whether it is the plan that is late or the start of the process.
const PROMPT: Duration = Duration::from_secs(1);
/// What is due for longer than this cannot be planned: it is recorded that the process has been there.
const LATE: Duration = Duration::from_millis(500);
/// And again after so much of the time for which it has been due.
const AGAIN: u32 = 8;

/// Since when this process has been looking at its schedules without a gap.
#[derive(Debug, Default)]
pub(super) struct Watch {
    since: Option<Timestamp>,
    looked: Option<(Instant, Timestamp)>,
    /// The row that says so, and since when.
    row: Option<(i64, Timestamp)>,
    /// The end of the watch before, until that is recorded.
    before: Option<Timestamp>,
    /// When it was last recorded that it goes on.
    seen: Option<Instant>,
    /// Until when a session says that this process is there.
    said: Option<(Weak<Session>, Second)>,
}

impl Watch {
    /// It looks now, by the database's clock.
    pub(super) fn look(&mut self, now: Timestamp) {
        // Of a machine that slept, or a clock that was set forward, only the database's clock tells.
        let unbroken = |(at, then): (Instant, Timestamp)| at.elapsed() < UNBROKEN && now.since(then) < UNBROKEN;
        let is_unbroken = self.looked.is_some_and(unbroken);
        let since = self.since.filter(|since| is_unbroken && *since <= now);
        if since.is_none() {
            self.before = self.looked.map(|(_, then)| then);
        }
        self.looked = Some((Instant::now(), now));
        self.since = since.or(Some(now));
    }

    /// Writes what the database does not know yet.
    pub(super) async fn record(
        &mut self,
        session: &Arc<Session>,
        engine: &Engine,
        relay: &str,
        first: First,
    ) -> Result<(), Error> {
        self.say(session, Some(Second::after(first.now.plus(UNBROKEN)))).await?;
        let Some(since) = self.since else { return Ok(()) };
        let Some((id, _)) = self.row.filter(|(_, recorded)| *recorded == since) else {
            let watcher = WatchingProcess { instance: engine.registry.instance(), relay };
            let before = self.row.zip(self.before).map(|((id, _), ended)| (id, ended));
            let row = watches::begin(session, watcher, since, before).await?;
            self.row = row.map(|row| (row, since));
            return Ok(());
        };
        let late = first.at.map(|at| first.now.since(at)).unwrap_or_default();
        let pause = LATE.max(late / AGAIN);
        if late > LATE && self.seen.is_none_or(|seen| seen.elapsed() >= pause) {
            self.seen = Some(Instant::now());
            if !watches::seen(session, id).await? {
                self.row = None; // it was deleted: it is written again
            }
        }
        Ok(())
    }

    /// Says until when this process is there; a session that has ended says nothing any more.
    async fn say(&mut self, session: &Arc<Session>, until: Option<Second>) -> Result<(), Error> {
        let in_session = |(said, _): &&(Weak<Session>, Second)| Weak::ptr_eq(said, &Arc::downgrade(session));
        let former = self.said.as_ref().filter(in_session).map(|(_, until)| *until);
        if former != until {
            liveness::say_there(session, until, former).await?;
            self.said = until.map(|until| (Arc::downgrade(session), until));
        }
        Ok(())
    }

    /// Whether it has not looked for too long: it ended with its last look.
    pub(super) fn is_broken(&self) -> bool {
        self.looked.is_some_and(|(at, _)| at.elapsed() >= UNBROKEN)
    }

    /// It ends, if it has not ended already.
    pub(super) async fn end(&mut self, engine: &Engine) -> Result<(), Error> {
        let ended = self.looked.filter(|_| self.is_broken()).map(|(_, then)| then);
        let row = self.row.take();
        let said = self.said.take();
        *self = Self { said, ..Self::default() };
        if let Some((id, _)) = row {
            let session = engine.probe.session().await?;
            self.say(&session, None).await?;
            watches::end(&session, id, ended).await?;
        }
        Ok(())
    }

    /// Since when this process has watched; another process cannot know it when it could not be written.
    pub(super) fn span(&self) -> Option<Span> {
        self.since.map(|from| Span { from, to: Timestamp::INFINITY })
    }
}

/// The times in which replicas watched, each from [`PROMPT`] before it began, in the order of their beginnings.
#[derive(Debug)]
pub(super) struct Watched(Vec<Span>);

impl Watched {
    /// What is no later than [`PROMPT`] was not missed.
    pub(super) fn promptly(now: Timestamp) -> Self {
        let mut watched = Self(Vec::new());
        watched.add([Span { from: now, to: Timestamp::INFINITY }]);
        watched
    }

    /// These, too.
    pub(super) fn add(&mut self, spans: impl IntoIterator<Item = Span>) {
        let earlier = |span: Span| Span { from: span.from.minus(PROMPT), ..span };
        self.0.extend(spans.into_iter().map(earlier));
        self.0.sort_unstable_by_key(|span| span.from);
    }

    /// The last instant after this one up to which no replica watched; none when one did at this instant.
    pub(super) fn dark_until(&self, at: Timestamp) -> Option<Timestamp> {
        if self.0.iter().any(|span| span.from <= at && at <= span.to) {
            return None;
        }
        // The last span begins a moment before now, and has no end.
        let next = self.0.iter().map(|span| span.from).find(|from| *from > at);
        Some(next.unwrap_or(Timestamp::INFINITY).minus(Duration::from_micros(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(&format!("2026-11-21T{text}Z")).expect("valid")
    }

    #[test]
    fn watch_with_a_gap_begins_again() {
        let mut watch = Watch::default();
        let look = |watch: &mut Watch, now: &str| {
            watch.look(at(now));
            (watch.since, watch.before)
        };
        assert_eq!(look(&mut watch, "01:00:00"), (Some(at("01:00:00")), None));
        assert_eq!(look(&mut watch, "01:00:01"), (Some(at("01:00:00")), None));
        watch.looked = Instant::now().checked_sub(UNBROKEN).map(|long_ago| (long_ago, at("01:00:01")));
        assert_eq!(look(&mut watch, "01:00:02"), (Some(at("01:00:02")), Some(at("01:00:01"))));
        // The machine slept, or a clock was set forward: it is later than this process thinks.
        assert_eq!(look(&mut watch, "01:30:00"), (Some(at("01:30:00")), Some(at("01:00:02"))));
        // After a clock was set back nothing is known of what was watched.
        assert_eq!(look(&mut watch, "00:00:00").0, Some(at("00:00:00")));
    }

    // Guarantee: schedules.missed
    #[test]
    fn time_without_a_watch_is_dark() {
        let mut watched = Watched::promptly(at("02:00:00"));
        let span = |from, to| Span { from: at(from), to: at(to) };
        watched.add(vec![span("01:30:00", "01:40:00"), span("01:00:00", "01:10:00"), span("01:05:00", "01:20:00")]);
        let dark = |text| watched.dark_until(at(text));
        for there in ["00:59:59", "01:20:00", "01:29:59", "01:35:00", "01:59:59", "02:00:00"] {
            assert_eq!(dark(there), None, "{there}");
        }
        assert_eq!(dark("00:10:00"), Some(at("00:59:58.999999")));
        assert_eq!(dark("01:20:01"), Some(at("01:29:58.999999")));
        assert_eq!(dark("01:40:00.000001"), Some(at("01:59:58.999999")));
    }
}
