use super::*;

#[path = "sums_property_tests.rs"]
mod properties;

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
