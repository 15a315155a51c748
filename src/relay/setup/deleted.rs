//! A cursor whose row was deleted while this process ran.
//!
//! Created as `start` says, it would skip rows under "now", and otherwise send rows again. So it is created where it was last seen,
//! and stays halted until an operator decides.

use crate::cursor::{self, Creation, ErrorReport, Halting};
use crate::database::Error;
use crate::position::Position;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::setup::fingerprint::fingerprint;

/// Where this process has last seen a cursor.
#[derive(Clone, Debug)]
pub(in crate::relay) struct LastSeen {
    /// `None` is before every row.
    pub(in crate::relay) position: Option<Position>,
}

/// Creates the cursor's row where it was last seen, halted, unless it is there.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn create_again(
    engine: &Engine,
    config: &Config,
    seen: &LastSeen,
    creation: Creation<'_>,
) -> Result<(), Error> {
    let name = &config.name;
    let place = seen.position.as_ref().map_or_else(|| "before every row".to_owned(), |seen| format!("at {seen}"));
    let message =
        format!("the row of cursor {name} in outbox.cursor was deleted; this replica had last seen it {place}");
    let hint = format!(
        "The cursor is created again there. Rows after that may have been delivered already: to send them, perhaps again, \
         `outbox-relay cursor resume {name}`; to begin elsewhere, `outbox-relay cursor seek {name} --at INSTANT` before it. To give a \
         cursor up, stop its replicas and run `outbox-relay cursor remove {name}`."
    );
    let report = ErrorReport { class: "fatal", code: CODE, message: &message, hint: &hint, message_id: None };
    let halting = Halting { report, fingerprint: &fingerprint(config) };
    let creation = Creation { position: seen.position.as_ref(), ..creation };
    if cursor::create_again(engine.slot(false).await?.lock, creation, &halting).await? {
        tracing::error!(cursor = name, code = CODE, error = message, hint, "relay halted");
    }
    Ok(())
}

const CODE: &str = "cursor_deleted";
