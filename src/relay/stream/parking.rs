//! The key of a row that becomes a dead letter, which is parked with it (`on_poison = "park_key"`).

use std::borrow::Cow;

use crate::audit::element;
use crate::batch::Batch;
use crate::cursor::LockedCursor;
use crate::cursor::parked::{LONGEST_KEY, ParkedKeys, ParkedSample};
use crate::database::codec::Raw;
use crate::database::{Error, sqlstate};
use crate::message::Field;
use crate::position::Position;
use crate::relay::OnPoison;
use crate::relay::engine::dead_letter::words;
use crate::relay::engine::deadline::within;
use crate::relay::setup::row_key::RowKey;
use crate::relay::stream::after_publish::AfterPublish;
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::turn::Turn;
use crate::relay::stream::withheld::Parked;
use crate::sink::{Class, Failure, Published};

/// So many keys tell of what all of them were made.
const SAMPLED: i64 = 100;

impl Turn<'_> {
    /// Finds out, once for the keys that are parked, whether they were made of what this configuration makes keys of: another column
    /// has other texts, and rows of the parked keys would pass under those. So would they under other labels, which is asked each
    /// time.
    pub(in crate::relay) async fn judge_keys(&mut self, cursor: &LockedCursor) -> Result<(), TurnError> {
        let ready = self.ready;
        let Some(key) = ready.key.as_ref().filter(|_| !self.parked.keys.is_empty()) else {
            self.learned.keys_fit = None;
            return Ok(());
        };
        // A replica with another configuration may have parked keys since, and ended those that were judged.
        let sum = sum_of(&self.parked);
        self.learned.relabelled = !self.labels_mean_the_same(cursor, key, sum).await?;
        if self.learned.relabelled {
            self.learned.keys_fit = None;
            return Ok(());
        }
        if self.learned.keys_fit == Some(sum) {
            return Ok(());
        }
        self.learned.keys_fit = None;
        let wanted: Vec<Field> = key.numbers().iter().map(|&number| ready.fields[number].clone()).collect();
        let samples = within(self.engine, cursor.parked_samples(&words(&wanted), SAMPLED)).await?;
        for sample in &samples {
            if !self.made_as_now(key, sample).await? {
                return Ok(());
            }
        }
        self.learned.keys_fit = Some(sum);
        Ok(())
    }

    /// Whether a key was made of what makes keys now. Where none of its rows could be read, what makes its key is read of the newest:
    /// one that is gone, or of which that cannot be read either, says nothing against it.
    async fn made_as_now(&self, key: &RowKey, sample: &ParkedSample) -> Result<bool, TurnError> {
        let made = match (sample.is_complete, &sample.newest) {
            (Some(true), _) => key.of_values(self.ready.fields.len(), &sample.values),
            (Some(false), _) => None,
            (None, None) => return Ok(true),
            (None, Some(newest)) => match self.read_key(key, newest).await? {
                Ok(Some(values)) => key.of(&values.message(0)).map(Cow::into_owned),
                Ok(None) | Err(_) => return Ok(true),
            },
        };
        Ok(made.as_ref() == Some(&sample.key))
    }

    /// Why no new row may be published: keys are parked, and this relay sets none apart, or others.
    pub(in crate::relay) fn keys_unknown(&self) -> Option<Failure> {
        let (keys, config) = (self.parked.keys.len(), &self.ready.config);
        let (is, back) = match &self.ready.key {
            _ if keys == 0 => return None,
            None => (
                "this configuration has no on_poison = \"park_key\"",
                "Write on_poison = \"park_key\" back, under at_least_once",
            ),
            Some(_) if self.learned.keys_fit.is_some() => return None,
            Some(_) if self.learned.relabelled => (
                "labels of the enum that makes keys were renamed",
                "Give the labels their names back (ALTER TYPE … RENAME VALUE)",
            ),
            Some(_) => (
                "this configuration makes keys of another column",
                "Write the former [relay.turn] lane, key or `to` of the sink back",
            ),
        };
        let message = format!("{keys} keys are parked, and {is}");
        let hint = format!(
            "New rows of these keys must not pass those that wait. {back}; or end what they wait for by \
             `outbox-relay dead-letter redrive` or `discard` (`outbox-relay dead-letter list --cursor {}`), then resume the cursor.",
            config.name
        );
        Some(Failure::of(Class::Fatal, "keys_parked", message, hint))
    }

    /// A row that cannot be read is passed like others of its key, if that is parked: it waits behind them, to be read again.
    pub(in crate::relay) async fn behind_its_key(&self, relayed: Relayed) -> Result<Relayed, TurnError> {
        let (Some(row_key), true) = (&self.ready.key, relayed.unread && !self.parked.keys.is_empty()) else {
            return Ok(relayed);
        };
        let Some((batch, row)) = relayed.locate(0) else { return Ok(relayed) };
        let Ok(Some(values)) = self.read_key(row_key, &batch.position(row)).await? else { return Ok(relayed) };
        let mut parked = Parked::new(self.ready, self.parked.keys.clone(), None);
        let held = row_key.of(&values.message(0)).is_some_and(|key| parked.withhold_unread(batch, &key));
        if !held {
            return Ok(relayed);
        }
        let published = parked.ended(Published { acknowledged: 0, stopped: None, suspects: 1 }, 0);
        Ok(Relayed { opened: relayed.opened, ..Relayed::withheld(parked.withheld, published) })
    }

    /// The key that is parked with the row that becomes a dead letter. When it cannot be, the relay halts instead: the key's
    /// later rows must not pass.
    pub(in crate::relay) async fn key_to_park<'b>(
        &self,
        verdict: AfterPublish<'b>,
        relayed: &Relayed,
    ) -> Result<(AfterPublish<'b>, Option<String>), TurnError> {
        let (AfterPublish::Bury(failure, _), OnPoison::ParkKey, Some(row_key)) =
            (&verdict, self.ready.config.on_poison, &self.ready.key)
        else {
            return Ok((verdict, None));
        };
        let Some((batch, row)) = relayed.locate(relayed.published.acknowledged) else { return Ok((verdict, None)) };
        let read = if relayed.unread { Some(self.read_key(row_key, &batch.position(row)).await?) } else { None };
        let key = match &read {
            // The row was deleted, and its key with it.
            Some(Ok(None)) => None,
            Some(Ok(Some(values))) => row_key.of(&values.message(0)),
            Some(Err(why)) => return Ok((AfterPublish::Halt(cannot_park(failure, why)), None)),
            None => row_key.of(&batch.message(row)),
        };
        // A row before the one that its key waits for, which a seek has led back to: it has been sent before.
        let Some(key) = key.filter(|key| !self.parked.keys.contains_key(&**key)) else { return Ok((verdict, None)) };
        let (keys, most) = (self.parked.keys.len() as u64, self.ready.config.parking.keys);
        if keys >= most {
            let why = format!("{keys} keys are parked already, and park_keys allows {most}");
            return Ok((AfterPublish::Halt(cannot_park(failure, &why)), None));
        }
        if !RowKey::fits(&key) {
            let why = format!("its key has {} bytes, and {LONGEST_KEY} at most can be parked", key.len());
            return Ok((AfterPublish::Halt(cannot_park(failure, &why)), None));
        }
        let key = key.into_owned();
        Ok((verdict, Some(key)))
    }

    /// What makes the key of a row of which nothing else can be read; or why that cannot be read either.
    async fn read_key(&self, key: &RowKey, position: &Position) -> Result<Result<Option<Batch>, String>, TurnError> {
        let fields = &self.ready.fields;
        let wanted: Vec<Field> = key.numbers().iter().map(|&number| fields[number].clone()).collect();
        let sql = self.ready.shape.row_sql(&wanted, self.ready.config.turn.max_row_bytes);
        let Some(id) = &position.id else { return Ok(Ok(None)) };
        let reader = within(self.engine, self.engine.connection()).await?;
        let reading = async {
            let statement = reader.prepare_cached(&sql).await?;
            Ok::<_, Error>(reader.query_opt(&statement, &[&position.created_at, id]).await?)
        };
        let row = match within(self.engine, reading).await {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(Ok(None)),
            Err(error) if sqlstate::is_about_a_read_row(&error) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let mut values: Vec<Option<&[u8]>> = vec![None; fields.len()];
        for (column, &number) in key.numbers().iter().enumerate() {
            values[number] = row.try_get::<_, Option<Raw<'_>>>(column + 2).map_err(Error::from)?.map(|raw| raw.0);
        }
        let mut batch = Batch::new(fields.len());
        batch.push(position.created_at, id, values);
        Ok(Ok(Some(batch)))
    }
}

/// Tells one set of keys from another, whatever their order.
fn sum_of(parked: &ParkedKeys) -> u64 {
    parked.keys.keys().fold(0, |sum, key| sum.wrapping_add(element(key)))
}

/// The halt at a row whose key cannot be parked.
fn cannot_park(failure: &Failure, why: &str) -> Failure {
    let message = format!("{}. The row's key cannot be parked: {why}", failure.message);
    let hint = format!(
        "{} Or make room: redrive or discard dead letters that hold keys up, or give the row up by `outbox-relay cursor skip`. Then resume \
         the cursor.",
        failure.hint
    );
    Failure { class: Class::Fatal, code: failure.code.clone(), message, hint, ..failure.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::parked::ParkedKey;
    use crate::position::Timestamp;

    #[test]
    fn sets_of_parked_keys_are_told_apart_by_their_texts_alone() {
        let parked = |texts: &[&str], rows: u64| {
            let since = Timestamp::from_pg_micros(0);
            let key = ParkedKey { rows, released: false, since, since_id: "1".to_owned(), until: None };
            let keys = texts.iter().map(|text| ((*text).to_owned(), key.clone())).collect();
            sum_of(&ParkedKeys { keys, released: false })
        };
        assert_eq!(parked(&["a", "b"], 1), parked(&["b", "a"], 7), "more rows wait with them");
        for other in [&["a"][..], &["a", "c"], &["ab"], &["a", "b", "c"]] {
            assert_ne!(parked(&["a", "b"], 1), parked(other, 1), "{other:?}");
        }
    }
}
