//! A cursor whose row was deleted while this process ran.
//!
//! Created as `start` says, it would skip rows under "now", and otherwise send rows again. So it is created where it was last seen,
//! and stays halted until an operator decides.

use crate::cursor::{self, Creation, ErrorReport, Halting, Standing};
use crate::database::{Error, Session};
use crate::late::Swept;
use crate::position::Position;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::setup::fingerprint::fingerprint;

/// Where this process has last seen a cursor.
#[derive(Clone, Debug)]
pub(in crate::relay) struct LastSeen {
    /// `None` is before every row.
    position: Option<Position>,
    /// Up to where late rows had been found.
    swept: Option<Swept>,
}

impl LastSeen {
    /// Where a cursor stands; none while rows are reserved, of which it may stand beyond some that are never sent.
    pub(in crate::relay) fn of(standing: &Standing) -> Option<Self> {
        let seen = || Self { position: standing.position.clone(), swept: standing.swept.clone() };
        (!standing.in_flight).then(seen)
    }

    /// For people.
    pub(in crate::relay) fn place(&self) -> String {
        self.position.as_ref().map_or_else(|| "before every row".to_owned(), |seen| format!("at {seen}"))
    }
}

/// Creates the cursor's row where it was last seen, halted, unless it is there.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn create_again(
    engine: &Engine,
    session: &Session,
    config: &Config,
    seen: &LastSeen,
    creation: Creation<'_>,
) -> Result<(), Error> {
    let name = &config.name;
    if !cursor::standings(session, &[name]).await?.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the row of cursor {name} in outbox.cursor was deleted; this replica had last seen it {}",
        seen.place()
    );
    let hint = format!(
        "The cursor is created again there. Rows after that may have been delivered already, with [relay.turn] in_flight many: to send \
         them, perhaps again, `outbox-relay cursor resume {name}`; to begin elsewhere, `outbox-relay cursor seek {name} --at INSTANT` \
         before it. To give a cursor up, stop its replicas and run `outbox-relay cursor remove {name}`."
    );
    let report = ErrorReport { class: "fatal", code: CODE, message: &message, hint: &hint, message_id: None };
    let halting = Halting { report, fingerprint: &fingerprint(config) };
    let creation = Creation { position: seen.position.as_ref(), ..creation };
    let loan = engine.slot(false).await?.lock;
    if cursor::create_again(loan, creation, seen.swept.as_ref(), &halting).await? {
        tracing::error!(cursor = name, code = CODE, error = message, hint, "relay halted");
    }
    Ok(())
}

const CODE: &str = "cursor_deleted";
