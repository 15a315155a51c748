//! What is passed is one prefix of the rows.

use proptest::prelude::*;

use super::*;
use crate::audit::{Sums, element};
use crate::relay::stream::turn_buffer::TurnBuffer;

/// Of a row that does not match.
const LEFT_OUT: u8 = 3;
/// Of a row that the sink would refuse.
const REFUSED: u8 = 4;

type Keys = Vec<Vec<Option<u8>>>;

/// Batches of rows that are numbered from 0, each with its number as id, place and value; those with a key are withheld.
fn taken(keys: &Keys) -> (TurnBuffer, Withheld, Vec<Option<u8>>) {
    let (mut kept, mut withheld, mut row) = (TurnBuffer::default(), Withheld::new(true), 0);
    for keys in keys {
        let mut batch = Batch::new(1);
        for _ in keys {
            let id = row.to_string();
            batch.push(Timestamp::from_pg_micros(row), &id, [Some(id.as_bytes())]);
            row += 1;
        }
        let fates = keys.iter().map(|key| match key {
            None => Fate::Published,
            Some(LEFT_OUT) => Fate::LeftOut,
            Some(REFUSED) => Fate::Refused(Failure::of(Class::Poison, "refused", "refused", "")),
            Some(key) => Fate::Parked(key.to_string()),
        });
        let open = withheld.take(&batch, fates, kept.rows());
        kept.keep(open);
    }
    (kept, withheld, keys.concat())
}

proptest! {
    // Guarantee: parked.order
    #[test]
    fn what_is_passed_is_one_prefix_of_the_rows_whatever_is_acknowledged(
        keys in prop::collection::vec(prop::collection::vec(prop::option::of(0_u8..=REFUSED), 0..6), 0..6),
        released in any::<prop::sample::Index>(),
    ) {
        let (kept, mut withheld, all) = taken(&keys);
        prop_assert_eq!(kept.rows() + withheld.rows(), all.len(), "no row is lost, and none is there twice");
        let released = released.index(kept.rows() + 1);
        withheld.release(released);
        let places = |wanted: &dyn Fn(Option<u8>) -> bool| {
            (0..all.len()).filter(|&row| wanted(all[row])).collect::<Vec<_>>()
        };
        let (published, parked) = (places(&|key| key.is_none()), places(&|key| key.is_some_and(|key| key < LEFT_OUT)));
        let refused = places(&|key| key == Some(REFUSED));
        for acknowledged in released..=kept.rows() {
            let passed = acknowledged + withheld.passed(acknowledged);
            prop_assert_eq!(passed, published.get(acknowledged).copied().unwrap_or(all.len()), "up to the next row to publish");
            let end = withheld.end(acknowledged).or_else(|| kept.end(acknowledged));
            prop_assert_eq!(end.and_then(|end| end.id), passed.checked_sub(1).map(|last| last.to_string()), "and no further");
            let written = withheld.parked(String::new(), vec!["value".to_owned()], acknowledged).unwrap_or_default();
            let expected: Vec<String> = parked.iter().filter(|row| **row < passed).map(usize::to_string).collect();
            prop_assert_eq!(&written.ids, &expected, "all parked rows among them, each once");
            let letters: Vec<_> = withheld.refused(acknowledged).map(|(row, before, _)| (row.id.to_owned(), before)).collect();
            let before = |row: usize| published.partition_point(|other| *other < row);
            let of_refused = refused.iter().filter(|row| **row < passed);
            let expected_letters: Vec<_> = of_refused.map(|row| (row.to_string(), before(*row))).collect();
            prop_assert_eq!(letters, expected_letters, "all refused rows among them, each once, in their place");
            let mut sums = kept.sums(acknowledged).expect("no row is released");
            sums.merge(&withheld.sums(acknowledged).expect("they are taken"));
            let mut meant = Sums::default();
            let is_meant = |row: &usize| all[*row] != Some(LEFT_OUT);
            (0..passed).filter(is_meant).for_each(|row| meant.add(element(&row.to_string())));
            prop_assert_eq!(sums, meant, "all that the sink was to get, and no other row");
            let values: Vec<_> = written.values.iter().map(|value| value.expect("not NULL")).collect();
            prop_assert_eq!(values, expected.iter().map(|id| id.as_bytes()).collect::<Vec<_>>(), "whole, and its own");
            for (id, key) in written.ids.iter().zip(&written.keys) {
                let known = all[id.parse::<usize>().expect("a number")].map(|key| key.to_string());
                prop_assert_eq!(known.as_deref(), Some(*key));
            }
        }
    }
}
