//! Parked keys whose texts are labels of enums. `ALTER TYPE … RENAME VALUE` gives new rows of a parked key another text, under
//! which they would pass those that wait.
//!
//! Told before rows are read: a parked label that its enum has no more, and one that is another value's than when this replica saw
//! the same keys parked before. Of labels that were exchanged while none looked, nothing tells.

use std::collections::HashMap;

use crate::audit::element;
use crate::cursor::LockedCursor;
use crate::message::Field;
use crate::relay::engine::dead_letter::words;
use crate::relay::engine::deadline::within;
use crate::relay::setup::row_key::RowKey;
use crate::relay::stream::learned::LabelMeanings;
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::turn::Turn;
use crate::source::enums;

impl Turn<'_> {
    /// Whether the labels that parked keys are made of mean what they meant; `sum` tells this set of keys from others.
    pub(in crate::relay) async fn labels_mean_the_same(
        &mut self,
        cursor: &LockedCursor,
        key: &RowKey,
        sum: u64,
    ) -> Result<bool, TurnError> {
        let ready = self.ready;
        let wanted: Vec<Field> = key.numbers().iter().map(|&number| ready.fields[number].clone()).collect();
        let of = |field: &Field| match field {
            Field::Text(column) => ready.shape.enums.get(column).copied(),
            _ => None,
        };
        let of: Vec<Option<u32>> = wanted.iter().map(of).collect();
        let types: Vec<u32> = of.iter().flatten().copied().collect();
        if types.is_empty() {
            return Ok(true);
        }
        let values = within(self.engine, enums::read(cursor.transaction(), &types)).await?;
        let called = values.iter().map(|value| element(&format!("{} {}", value.oid, value.label)));
        let called = called.fold(0, u64::wrapping_add);
        let known = self.learned.label_meanings.filter(|known| known.keys == sum);
        if known.is_some_and(|known| known.values == called) {
            return Ok(true);
        }
        let values: HashMap<(u32, &str), u32> =
            values.iter().map(|value| ((value.of, value.label.as_str()), value.oid)).collect();
        // Of all keys: a rename concerns some.
        let all = i64::try_from(self.parked.keys.len()).unwrap_or(i64::MAX);
        let samples = within(self.engine, cursor.parked_samples(&words(&wanted), all)).await?;
        let mut meanings = 0_u64;
        for sample in samples.iter().filter(|sample| sample.is_complete == Some(true)) {
            for (of, value) in of.iter().zip(&sample.values) {
                let (Some(of), Some(value)) = (of, value) else { continue };
                let label = String::from_utf8_lossy(value);
                let Some(oid) = values.get(&(*of, &*label)) else { return Ok(false) };
                // Where the key is made of several columns, or of a part of one, other rows of it may have other values.
                if label == sample.key {
                    meanings = meanings.wrapping_add(element(&format!("{oid} {label}")));
                }
            }
        }
        if known.is_some_and(|known| known.meanings != meanings) {
            return Ok(false);
        }
        self.learned.label_meanings = Some(LabelMeanings { keys: sum, values: called, meanings });
        Ok(true)
    }
}
