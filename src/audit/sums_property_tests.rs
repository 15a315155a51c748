//! The sums and their comparison, held to plain counting on random elements.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Power by repeated plain remainders, as a second opinion on the fast arithmetic.
fn slow_power(base: u64, exponent: u32) -> u64 {
    let prime = u128::from(PRIME);
    let power = (0..exponent).fold(1, |power, _| power * (u128::from(base) % prime) % prime);
    u64::try_from(power).expect("below the modulus")
}

/// What plain counting says: how often each element is surplus in the table, or short if negative.
fn surplus(delivered: &[u64], table: &[u64]) -> BTreeMap<u64, i64> {
    let mut counts = BTreeMap::new();
    for element in table {
        *counts.entry(*element).or_default() += 1;
    }
    for element in delivered {
        *counts.entry(*element).or_default() -= 1;
    }
    counts.retain(|_, count| *count != 0);
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn names_every_small_difference(
        seed: u32, common in 0_usize..5_000, total in 0_usize..=MOST_DIFFERING, split in 0_usize..=MOST_DIFFERING,
    ) {
        let missing = elements(&format!("missing {seed}"), split.min(total));
        let gone = elements(&format!("gone {seed}"), total - missing.len());
        let common = elements(&format!("common {seed}"), common);
        let (delivered, table) = (sums_of(&[&common, &gone]), sums_of(&[&missing, &common]));
        if total == 0 {
            prop_assert_eq!(compare(&delivered, &table), Comparison::Equal);
        } else {
            let found = difference(&delivered, &table);
            prop_assert_eq!((found.missing(), found.gone()), (missing.len(), gone.len()));
            let walked = walk(&found, &[&common, &missing]);
            prop_assert_eq!(&walked, &missing);
            prop_assert!(found.confirms(&walked));
            prop_assert!(gone.iter().all(|element| found.is_gone(*element)));
            prop_assert!(!common.iter().chain(&missing).any(|element| found.is_gone(*element)));
            if let Some((_, shorter)) = missing.split_first() {
                let swapped = [&[common.first().map_or(1, |element| *element)], shorter].concat();
                prop_assert!(!found.confirms(shorter) && !found.confirms(&swapped));
            }
        }
    }

    #[test]
    fn agrees_with_plain_counting_where_elements_repeat(
        delivered in prop::collection::vec(1_u64..12, 0..14), table in prop::collection::vec(1_u64..12, 0..14),
    ) {
        let counts = surplus(&delivered, &table);
        let missing: Vec<u64> = counts.iter().flat_map(|(element, count)| {
            std::iter::repeat_n(*element, usize::try_from(*count).unwrap_or(0))
        }).collect();
        let gone: usize = counts.values().map(|count| usize::try_from(-*count).unwrap_or(0)).sum();
        // These elements are tiny numbers instead of hashes, so that only the algebra is tested.
        match compare(&sums_of(&[&delivered]), &sums_of(&[&table])) {
            Comparison::Equal => prop_assert!(counts.is_empty()),
            Comparison::TooMany => prop_assert!(missing.len() + gone > MOST_DIFFERING),
            Comparison::Differs(found) => {
                prop_assert!((1..=MOST_DIFFERING).contains(&(missing.len() + gone)));
                prop_assert_eq!((found.missing(), found.gone()), (missing.len(), gone));
                prop_assert!(found.confirms(&missing));
                for element in 1..12 {
                    let count = counts.get(&element).map_or(0, |count| *count);
                    prop_assert_eq!(found.is_missing(element), count > 0);
                    prop_assert_eq!(found.is_gone(element), count < 0);
                }
            }
        }
    }

    #[test]
    fn sums_are_the_power_sums(values in prop::collection::vec(any::<u64>(), 0..20)) {
        let sums = sums_of(&[&values]);
        for (sum, exponent) in sums.sums.iter().zip(1..) {
            let expected = values.iter().fold(0, |sum, value| plus(sum, slow_power(*value, exponent)));
            prop_assert_eq!(*sum, expected);
        }
    }

    #[test]
    fn bytes_round_trip_and_merge_is_union(left in prop::collection::vec(any::<u64>(), 0..50),
        right in prop::collection::vec(any::<u64>(), 0..50),
    ) {
        let union = sums_of(&[&left, &right]);
        let mut merged = sums_of(&[&left]);
        merged.merge(&sums_of(&[&right]));
        prop_assert_eq!(&merged, &union);
        prop_assert_eq!(Sums::from_bytes(&union.to_bytes()), Some(union));
    }

    #[test]
    fn bytes_that_are_read_are_written_back_the_same(
        mut bytes in prop::collection::vec(any::<u8>(), STORED_BYTES), high: bool,
    ) {
        if !high {
            // Without its top three bits, nearly every word is a valid sum.
            bytes.iter_mut().step_by(8).for_each(|byte| *byte &= 0x1f);
        }
        match Sums::from_bytes(&bytes) {
            Some(sums) => prop_assert_eq!(sums.to_bytes(), bytes),
            None => prop_assert!(high),
        }
    }

    #[test]
    fn arbitrary_sums_are_too_many(rows: (u64, u64), sums: [u64; SUMS], others: [u64; SUMS]) {
        let left = Sums { rows: rows.0, sums: sums.map(reduce) };
        // Counts close to each other, so that they alone do not settle it.
        let right = Sums { rows: rows.0.saturating_add(rows.1 % 10), sums: others.map(reduce) };
        prop_assert_eq!(compare(&left, &right), Comparison::TooMany);
        prop_assert_eq!(compare(&right, &left), Comparison::TooMany);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn overfull_differences_are_too_many(seed: u64, total in prop_oneof![10_usize..25, 10_usize..1_000], missing: u16) {
        // Half of the cases have close counts on both sides, which leave the count no say.
        let missing = if missing % 2 == 0 { usize::from(missing) % (total + 1) }
            else { (total / 2 + usize::from(missing) % 10).saturating_sub(5).min(total) };
        // A stride through the field instead of hashes keeps 20,000 cases quick; the start is hashed.
        let start = element(&seed.to_string());
        let values: Vec<u64> = (1..=total).scan(start, |value, _| {
            *value = multiply(*value, 0x0123_4567_89ab_cdef);
            Some(plus(multiply(*value, *value), *value))
        }).collect();
        let (table, delivered) = values.split_at(missing);
        prop_assert_eq!(compare(&sums_of(&[delivered]), &sums_of(&[table])), Comparison::TooMany);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn overfull_differences_of_hashed_ids_are_too_many(seed: u32, total in 10_usize..1_000, split in 0_usize..1_000) {
        let values = elements(&seed.to_string(), total);
        let (table, delivered) = values.split_at(split % (total + 1));
        let common = elements("common", 50);
        let (delivered, table) = (sums_of(&[&common, delivered]), sums_of(&[table, &common]));
        prop_assert_eq!(compare(&delivered, &table), Comparison::TooMany);
    }
}
