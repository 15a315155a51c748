//! What a turn keeps of the rows that it has read, in order: all that somebody may still ask for, and no more.

use std::collections::VecDeque;

use crate::audit::{self, Sums};
use crate::batch::Batch;
use crate::position::{Position, Timestamp};

/// See the module.
#[derive(Debug, Default)]
pub(in crate::relay) struct TurnBuffer {
    /// When the rows were created whose batches have been released.
    released: Vec<Timestamp>,
    /// The position of the last of them.
    end: Option<Position>,
    batches: VecDeque<Batch>,
    /// Over the ids of released rows, where it is asked for.
    sums: Option<Sums>,
}

impl TurnBuffer {
    /// Nothing yet; `sums` says whether [`Self::sums`] will be asked for.
    pub(in crate::relay) fn new(sums: bool) -> Self {
        Self { sums: sums.then(Sums::default), ..Self::default() }
    }

    /// Keeps a batch behind all others, and gives it back to look at.
    pub(in crate::relay) fn keep(&mut self, batch: Batch) -> &Batch {
        self.batches.push_back(batch);
        &self.batches[self.batches.len() - 1]
    }

    /// How many rows have been kept, released ones included.
    pub(in crate::relay) fn rows(&self) -> usize {
        self.released.len() + self.batches.iter().map(Batch::len).sum::<usize>()
    }

    /// The batches that have not been released.
    pub(in crate::relay) fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.batches.iter()
    }

    /// The first `acknowledged` rows will never be asked for again, except when they were created: batches that hold no
    /// others give their memory back.
    pub(in crate::relay) fn release(&mut self, acknowledged: usize) {
        while let Some(batch) = self.batches.front().filter(|batch| self.released.len() + batch.len() <= acknowledged) {
            self.released.extend_from_slice(batch.instants());
            if let Some(sums) = &mut self.sums {
                batch.ids().for_each(|id| sums.add(audit::element(id)));
            }
            self.end = batch.len().checked_sub(1).map(|row| batch.position(row)).or(self.end.take());
            self.batches.pop_front();
        }
    }

    /// How many rows have been released, and the position of the last of them.
    pub(in crate::relay) fn released(&self) -> (usize, Option<&Position>) {
        (self.released.len(), self.end.as_ref())
    }

    /// The batch and the row in it of row number `n`; none when there is no such row, or when it has been released.
    pub(in crate::relay) fn locate(&self, n: usize) -> Option<(&Batch, usize)> {
        let mut n = n.checked_sub(self.released.len())?;
        for batch in &self.batches {
            if n < batch.len() {
                return Some((batch, n));
            }
            n -= batch.len();
        }
        None
    }

    /// The position of the last of the first `n` rows, which are no fewer than have been released.
    pub(in crate::relay) fn end(&self, n: usize) -> Option<Position> {
        if n == self.released.len() {
            return self.end.clone();
        }
        let (batch, row) = self.locate(n.checked_sub(1)?)?;
        Some(batch.position(row))
    }

    /// Sums over the ids of the first `n` rows, which are no fewer than have been released; none where released rows are not in them.
    pub(in crate::relay) fn sums(&self, n: usize) -> Option<Sums> {
        let mut sums = match &self.sums {
            Some(sums) => sums.clone(),
            None if self.released.is_empty() => Sums::default(),
            None => return None,
        };
        let kept = self.batches.iter().flat_map(Batch::ids).take(n.saturating_sub(self.released.len()));
        kept.for_each(|id| sums.add(audit::element(id)));
        Some(sums)
    }

    /// When the first `n` rows were created.
    pub(in crate::relay) fn instants(&self, n: usize) -> Vec<Timestamp> {
        let kept = self.batches.iter().flat_map(Batch::instants);
        self.released.iter().chain(kept).take(n).copied().collect()
    }
}

impl FromIterator<Batch> for TurnBuffer {
    fn from_iter<T: IntoIterator<Item = Batch>>(batches: T) -> Self {
        Self { batches: batches.into_iter().collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(sizes: &[usize]) -> TurnBuffer {
        let mut row = 0;
        let batch = |size: &usize| {
            let mut batch = Batch::new(0);
            for _ in 0..*size {
                batch.push(Timestamp::from_pg_micros(row), &row.to_string(), []);
                row += 1;
            }
            batch
        };
        TurnBuffer { sums: Some(Sums::default()), ..sizes.iter().map(batch).collect() }
    }

    proptest! {
        #[test]
        fn what_is_asked_for_is_the_same_whatever_was_released_before(
            sizes in prop::collection::vec(1_usize..5, 0..8),
            steps in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let (whole, mut kept) = (kept(&sizes), kept(&sizes));
            let rows = whole.rows();
            let mut steps: Vec<usize> = steps.iter().map(|step| step.index(rows + 1)).collect();
            steps.sort_unstable();
            for acknowledged in steps {
                kept.release(acknowledged);
                prop_assert_eq!(kept.rows(), rows);
                for n in acknowledged..=rows + 1 {
                    prop_assert_eq!(kept.end(n), whole.end(n), "end of {}", n);
                    prop_assert_eq!(kept.instants(n), whole.instants(n));
                    prop_assert_eq!(kept.sums(n), whole.sums(n), "sums of {}", n);
                    let id = |(batch, row): (&Batch, usize)| batch.message(row).id.to_owned();
                    prop_assert_eq!(kept.locate(n).map(id), whole.locate(n).map(id), "row {}", n);
                }
                let left: usize = kept.batches().map(Batch::len).sum();
                prop_assert!(left <= rows - acknowledged + 4, "no more than a part of a batch is kept too long");
            }
        }
    }
}
