//! A dead letter that is sent again under `at_most_once`: it counts as sent before it is.

use std::time::Instant;

use super::{Flight, begin};
use crate::batch::Batch;
use crate::cursor::dead_letter::Redrive;
use crate::cursor::unknown::Unknown;
use crate::cursor::{LockedCursor, ReservedEnd};
use crate::database::Loan;
use crate::relay::engine::circuit;
use crate::relay::engine::deadline::within;
use crate::relay::stream::after_publish::in_doubt;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::redrive::{self, is_refused};
use crate::relay::stream::report;
use crate::relay::stream::turn::Turn;

impl Turn<'_> {
    /// Sends the first of the letters that an operator has chosen; the position stays where it is.
    pub(in crate::relay) async fn redrive_once(
        &mut self,
        cursor: LockedCursor,
        reader: Loan,
        letter: &Redrive,
        deadline: Instant,
    ) -> Result<TurnOutcome, TurnError> {
        let mut batch = Batch::new(self.ready.fields.len());
        let unread = self.read_in_time(&reader, letter, &mut batch).await?;
        if batch.is_empty() {
            // It is not read once more: what is sent is reserved before.
            return self.not_read(cursor, letter, unread).await;
        }
        drop(reader);
        let mode = self.mode(Some(redrive::mark(letter)), deadline);
        let ready = self.ready;
        let mut publication = match begin(&ready.sink, &batch.message(0), mode, self.engine.call_deadline).await {
            Ok(publication) => publication,
            Err(failure) => {
                within(self.engine, cursor.release()).await?;
                let message_id = letter.position.id.clone();
                return Ok(TurnOutcome::Redriven { rows: 0, failure: Some(failure), message_id });
            }
        };
        let before = cursor.position.clone();
        let rows = [batch.position(0)];
        let flight = Flight { rows: &rows, end: before.as_ref(), opened: None, letter: Some(letter.id), beyond: None };
        let Some(reserved) = self.reserve(cursor, flight, deadline).await? else { return Ok(TurnOutcome::Busy) };
        let may_send = self.transmit(&reserved, &mut publication, std::iter::once(&batch), deadline).await?;
        let published = publication.finish();
        let (rows, doubt) = (published.acknowledged, in_doubt(&published));
        let message = batch.message(0);
        let unknown = doubt.as_ref().map(|failure| Unknown {
            id: message.id,
            created_at: message.created_at,
            error: report::error(failure, Some(message.id)),
        });
        let refused = published.stopped.as_ref().filter(|failure| is_refused(failure));
        let refused = refused.map(|failure| report::error(failure, None));
        let not_sent = (rows == 0 && unknown.is_none()).then_some((letter.id, refused));
        let by = &self.engine.replica;
        let settlement = ReservedEnd { position: before.as_ref(), unknown, dead: None, not_sent, by, durable: true };
        let token = reserved.token().to_owned();
        let source = |source| TurnError::NotSettled { acknowledged: rows, token, source };
        within(self.engine, reserved.settle(settlement)).await.map_err(source)?;
        Ok(match doubt {
            Some(failure) => TurnOutcome::Unknown { rows, failure, message_id: Some(message.id.to_owned()) },
            None if !may_send => TurnOutcome::Early(circuit::PROBED_BY_ANOTHER),
            None => TurnOutcome::Redriven { rows, failure: published.stopped, message_id: letter.position.id.clone() },
        })
    }
}
