use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The elements of the ids `prefix-0` to `prefix-(count - 1)`.
fn elements(prefix: &str, count: usize) -> Vec<u64> {
    (0..count).map(|number| element(&format!("{prefix}-{number}"))).collect()
}

fn sums_of(parts: &[&[u64]]) -> Sums {
    let mut sums = Sums::default();
    for element in parts.iter().copied().flatten() {
        sums.add(*element);
    }
    sums
}

/// The difference, where one is expected.
fn difference(delivered: &Sums, table: &Sums) -> Difference {
    match compare(delivered, table) {
        Comparison::Differs(difference) => difference,
        other => panic!("expected a difference, not {other:?}"),
    }
}

/// The elements for which the walk over the table finds that they are missing.
fn walk(difference: &Difference, table: &[&[u64]]) -> Vec<u64> {
    table.iter().copied().flatten().copied().filter(|element| difference.is_missing(*element)).collect()
}

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

#[test]
fn hash_values_never_change() {
    // Computed with a separate implementation of SipHash-1-3 in Python.
    let expected = [
        ("", 511_592_730_047_456_751),
        ("1", 2_271_010_803_806_444_528),
        ("42", 680_469_992_939_502_024),
        ("5f0c6b1e-7c1d-4f0e-9a55-0c5b0f1d2e3a", 1_435_579_794_222_494_782),
        ("Zürich", 618_051_679_079_994_980),
        (&"a".repeat(100), 1_909_374_870_937_407_646),
    ];
    for (id, value) in expected {
        assert_eq!(element(id), value, "{id}");
    }
}

#[test]
fn stored_form_never_changes() {
    let stored = sums_of(&[&[2, 3]]).to_bytes();
    assert_eq!(stored.len(), 104);
    let words: Vec<u64> =
        stored.chunks(8).map(|word| u64::from_be_bytes(word.try_into().expect("eight bytes"))).collect();
    let expected = [2, 5, 13, 35, 97, 275, 793, 2315, 6817, 20_195, 60_073, 179_195, 535_537];
    assert_eq!(words, expected);
}

#[test]
fn bytes_that_no_sums_have_are_refused() {
    let good = sums_of(&[&elements("row", 3)]).to_bytes();
    assert!(Sums::from_bytes(&good).is_some());
    assert!(Sums::from_bytes(&[]).is_none());
    assert!(Sums::from_bytes(&good[..103]).is_none());
    assert!(Sums::from_bytes(&[good.as_slice(), &[0]].concat()).is_none());
    for sum in 1..=SUMS {
        for (value, allowed) in [(PRIME - 1, true), (PRIME, false), (u64::MAX, false)] {
            let mut bytes = good.clone();
            bytes[8 * sum..8 * sum + 8].copy_from_slice(&value.to_be_bytes());
            assert_eq!(Sums::from_bytes(&bytes).is_some(), allowed);
        }
    }
}

#[test]
fn arithmetic_holds_at_the_edges() {
    let edges = [0, 1, 2, 3, (1 << 60) - 1, 1 << 60, PRIME / 2, PRIME - 2, PRIME - 1];
    let prime = u128::from(PRIME);
    for left in edges {
        for right in edges {
            let (wide, other) = (u128::from(left), u128::from(right));
            assert_eq!(u128::from(multiply(left, right)), wide * other % prime);
            assert_eq!(u128::from(plus(left, right)), (wide + other) % prime);
            assert_eq!(u128::from(minus(left, right)), (wide + prime - other) % prime);
        }
        assert_eq!(multiply(left, inverse(left)), u64::from(left != 0));
    }
    for value in [0, 1, PRIME - 1, PRIME, PRIME + 1, 2 * PRIME, 7 * PRIME, 8 * PRIME, u64::MAX - 1, u64::MAX] {
        assert_eq!(reduce(value), value % PRIME);
    }
}

#[test]
fn sums_over_nothing_are_equal() {
    assert_eq!(compare(&Sums::default(), &Sums::default()), Comparison::Equal);
}

#[test]
fn nothing_delivered_names_up_to_nine_rows() {
    let rows = elements("row", MOST_DIFFERING + 1);
    for count in 1..=MOST_DIFFERING {
        let found = difference(&Sums::default(), &sums_of(&[&rows[..count]]));
        assert_eq!((found.missing(), found.gone()), (count, 0));
        assert!(found.confirms(&rows[..count]));
        assert!(!found.is_missing(rows[count]));
    }
    assert_eq!(compare(&Sums::default(), &sums_of(&[&rows])), Comparison::TooMany);
}

#[test]
fn one_planted_loss_is_named() {
    let rows = elements("row", 20_000);
    let delivered = sums_of(&[&rows[..7_654], &rows[7_655..]]);
    let found = difference(&delivered, &sums_of(&[&rows]));
    assert_eq!((found.missing(), found.gone()), (1, 0));
    assert_eq!(walk(&found, &[&rows]), [rows[7_654]]);
    assert!(found.confirms(&[rows[7_654]]));
    assert!(!found.confirms(&[rows[7_655]]));
    assert!(!found.confirms(&[]));
    assert!(!found.confirms(&[rows[7_654], rows[7_654]]));
}

#[test]
fn a_loss_is_named_beside_deletions_of_the_same_number() {
    let (rows, deleted) = (elements("row", 1_000), elements("deleted", 4));
    let found = difference(&sums_of(&[&rows[4..], &deleted]), &sums_of(&[&rows]));
    assert_eq!((found.missing(), found.gone()), (4, 4));
    assert_eq!(walk(&found, &[&rows]), rows[..4]);
    assert!(deleted.iter().all(|element| found.is_gone(*element)));
    assert!(!rows.iter().any(|element| found.is_gone(*element)));
}

#[test]
fn every_split_of_up_to_nine_is_named() {
    let (common, rows, deleted) = (elements("common", 100), elements("row", 9), elements("deleted", 9));
    for missing in 0..=MOST_DIFFERING {
        for gone in usize::from(missing == 0)..=MOST_DIFFERING - missing {
            let (table, delivered) = (sums_of(&[&common, &rows[..missing]]), sums_of(&[&deleted[..gone], &common]));
            let found = difference(&delivered, &table);
            assert_eq!((found.missing(), found.gone()), (missing, gone));
            assert!(found.confirms(&rows[..missing]));
            assert!(rows.iter().enumerate().all(|(index, row)| found.is_missing(*row) == (index < missing)));
            assert!(deleted.iter().enumerate().all(|(index, row)| found.is_gone(*row) == (index < gone)));
        }
    }
}

#[test]
fn many_deletions_are_too_many() {
    let rows = elements("row", 10_000);
    for kept in [0, 1, 5_000, 9_990] {
        assert_eq!(compare(&sums_of(&[&rows]), &sums_of(&[&rows[..kept]])), Comparison::TooMany);
    }
}

#[test]
fn equal_sums_with_other_counts_are_too_many() {
    let table = sums_of(&[&elements("row", 5)]);
    for rows in [0, 4, 6, 1_000, u64::MAX] {
        let delivered = Sums { rows, ..table.clone() };
        assert_eq!(compare(&delivered, &table), Comparison::TooMany);
        assert_eq!(compare(&table, &delivered), Comparison::TooMany);
    }
}

#[test]
fn a_wrong_count_is_never_explained() {
    let rows = elements("row", 100);
    let table = sums_of(&[&rows]);
    for lost in 1..=MOST_DIFFERING {
        for count in (80..=105).filter(|count| *count != 100 - u64::try_from(lost).expect("small")) {
            let delivered = Sums { rows: count, ..sums_of(&[&rows[lost..]]) };
            assert_eq!(compare(&delivered, &table), Comparison::TooMany, "{lost} lost, {count} counted");
        }
    }
}

#[test]
fn a_damaged_sum_is_never_explained() {
    let rows = elements("row", 100);
    let table = sums_of(&[&rows]);
    for lost in 0..=MOST_DIFFERING {
        for index in 0..SUMS {
            let mut delivered = sums_of(&[&rows[lost..]]);
            delivered.sums[index] = plus(delivered.sums[index], 1);
            assert_eq!(compare(&delivered, &table), Comparison::TooMany, "{lost} lost, sum {index}");
        }
    }
}

#[test]
fn an_id_delivered_once_of_twice_is_counted_and_not_confirmed() {
    let rows = elements("row", 10);
    let table: [&[u64]; 2] = [&rows, &rows[..1]];
    let found = difference(&sums_of(&[&rows]), &sums_of(&table));
    assert_eq!((found.missing(), found.gone()), (1, 0));
    assert_eq!(walk(&found, &table), [rows[0], rows[0]]);
    assert!(!found.confirms(&walk(&found, &table)));
    assert!(found.confirms(&rows[..1]));
}

#[test]
fn an_id_missing_twice_must_be_found_twice() {
    let rows = elements("row", 10);
    let found = difference(&sums_of(&[&rows[1..]]), &sums_of(&[&rows, &rows[..1]]));
    assert_eq!((found.missing(), found.gone()), (2, 0));
    assert!(found.confirms(&[rows[0], rows[0]]));
    assert!(!found.confirms(&[rows[0]]) && !found.confirms(&rows[..2]));
}

#[test]
fn the_same_element_many_times_is_told_or_too_many() {
    let rows = elements("row", 2);
    for count in 1..=40 {
        let many = sums_of(&[&vec![rows[0]; count]]);
        let same_count = sums_of(&[&vec![rows[1]; count]]);
        let none = Sums::default();
        assert_eq!(compare(&none, &many) == Comparison::TooMany, count > MOST_DIFFERING);
        assert_eq!(compare(&same_count, &many) == Comparison::TooMany, 2 * count > MOST_DIFFERING);
    }
}

#[test]
fn without_check_sums_overfull_differences_would_be_answered_wrongly() {
    let mut wrong = 0;
    for case in 0..200 {
        let (missing, gone) = (elements(&format!("missing {case}"), 10), elements(&format!("gone {case}"), 10));
        let (delivered, table) = (sums_of(&[&gone]), sums_of(&[&missing]));
        assert_eq!(compare(&delivered, &table), Comparison::TooMany);
        let differences = std::array::from_fn(|index| minus(table.sums[index], delivered.sums[index]));
        // With all sums at the fit's disposal, six missing and six gone "explain" any series.
        if let Some(answer) = approximant(&series(&differences), 0, SUMS) {
            assert!(answer.missing() <= 6 && answer.gone() <= 6);
            // The walk still uncovers it: the claimed elements are not in the table.
            assert!(!answer.confirms(&walk(&answer, &[&missing])));
            wrong += 1;
        }
    }
    assert_eq!(wrong, 200);
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
