//! The ids of rows that were passed and are in the table no more. Pure.
//!
//! The sums have hashes of them. Ids that are numbers are looked for among those around the slice's other ids; others cannot be named.

use crate::audit::{Difference, element};

/// So far beyond the smallest and the largest id that is known.
const AROUND: i64 = 10_000;
/// Not among more ids than this.
const MOST: i64 = 2_000_000;

/// Those of `difference` that are found among the numbers around `known`, which are the smallest and the largest id of the slice.
pub(super) fn named(difference: &Difference, known: Option<(i64, i64)>) -> Vec<String> {
    let Some((least, most)) = known.filter(|_| difference.gone() > 0) else { return Vec::new() };
    let (first, last) = (least.saturating_sub(AROUND), most.saturating_add(AROUND));
    if last.saturating_sub(first) > MOST {
        return Vec::new();
    }
    let ids = (first..=last).map(|id| id.to_string()).filter(|id| difference.is_gone(element(id)));
    ids.take(difference.gone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Comparison, Sums, compare};

    fn difference(delivered: impl IntoIterator<Item = i64>, table: impl IntoIterator<Item = i64>) -> Difference {
        let sums = |ids: &mut dyn Iterator<Item = i64>| {
            let mut sums = Sums::default();
            ids.for_each(|id| sums.add(element(&id.to_string())));
            sums
        };
        match compare(&sums(&mut delivered.into_iter()), &sums(&mut table.into_iter())) {
            Comparison::Differs(difference) => difference,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_that_are_gone_are_named_and_missing_ones_are_not() {
        let found = difference(1..=50, (4..=48).chain([60]));
        assert_eq!(named(&found, Some((4, 60))), ["1", "2", "3", "49", "50"]);
        assert_eq!(named(&difference(1..=50, 1..=51), Some((1, 51))), Vec::<String>::new(), "nothing is gone");
    }

    #[test]
    fn numbers_far_away_and_ids_of_other_types_are_not_named() {
        let found = difference(1..=50, 2..=50);
        assert_eq!(named(&found, None), Vec::<String>::new());
        assert_eq!(named(&found, Some((1_000_000, 1_000_050))), Vec::<String>::new());
        assert_eq!(named(&found, Some((i64::MIN, i64::MAX))), Vec::<String>::new());
        assert_eq!(named(&found, Some((9_000, 9_050))), ["1"]);
    }
}
