//! What indexes and ids must be.

use super::*;

#[test]
fn index_of_another_collation_is_not_unique() {
    let mut table = table("clock_timestamp()");
    table.indexes[0].compares_as_columns = false;
    let verdict = judge(&table, &config());
    assert_eq!(codes(&verdict, Level::Error), ["not_unique"]);
    assert!(verdict.findings[0].message.starts_with("the unique index bookings_pkey compares by another collation"));
}

#[test]
fn an_index_that_yields_another_order_is_as_good_as_none() {
    let mut table = table("clock_timestamp()");
    table.indexes[1].ordered = false;
    assert_eq!(
        codes(&judge(&table, &config()), Level::Warn),
        ["index_missing", "created_at_unproven", "late_rows_unswept"]
    );
    table.indexes[1].ordered = true;
    table.indexes[1].columns.reverse();
    assert_eq!(
        codes(&judge(&table, &config()), Level::Warn),
        ["index_missing", "created_at_unproven", "late_rows_unswept"]
    );
}

#[test]
fn only_random_ids_are_called_random() {
    for (type_name, default, random) in [
        ("uuid", None, true),
        ("uuid", Some("gen_random_uuid()"), true),
        ("uuid", Some("uuidv7()"), false),
        ("text", Some("(gen_random_uuid())::text"), true),
        ("text", None, false),
        ("bigint", None, false),
    ] {
        let mut table = table("clock_timestamp()");
        table.columns[0].type_name = type_name.into();
        table.columns[0].default = default.map(str::to_owned);
        let warned = codes(&judge(&table, &config()), Level::Warn).contains(&"tie_break_random");
        assert_eq!(warned, random, "{type_name} {default:?}");
    }
}
