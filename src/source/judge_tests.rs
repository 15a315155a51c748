use std::time::Duration;

use super::super::guard::Guard;
use super::super::table::{Column, Index, Stamp};
use super::super::{RuleChoice, TableName};
use super::stamp::{WITH_ZONE, WITHOUT_ZONE};
use super::*;

#[path = "judge/certainty_tests.rs"]
mod certainty;
#[path = "judge/index_tests.rs"]
mod index;

fn config() -> Stream {
    Stream {
        table: TableName { schema: "public".into(), name: "bookings".into() },
        id: "id".into(),
        created_at: "created_at".into(),
        horizon: RuleChoice::Auto,
        time_zone: None,
        latency_window: None,
        standbys: 0,
        max_hold: None,
        filter: std::collections::BTreeMap::new(),
    }
}

fn stamp(default: &str) -> Stamp {
    Stamp {
        guard: Guard { relation: 1, name: "bookings".into(), ..Guard::default() },
        default: Some(default.into()),
        owner: "boss".into(),
        writers: vec!["app".into()],
        ..Stamp::default()
    }
}

/// The stamping trigger has the last word, in every session.
fn stamped() -> Guard {
    Guard {
        relation: 1,
        name: "bookings".into(),
        last: Some("zz_stamp_created_at".into()),
        fits: true,
        always: true,
        update_trigger: true,
        ..Guard::default()
    }
}

fn table(default: &str) -> Table {
    let column = |name: &str, type_name: &str| Column {
        name: name.into(),
        type_name: type_name.into(),
        modifier: -1,
        nullable_in: Vec::new(),
        readable: true,
        default: None,
        ..Column::default()
    };
    Table {
        root: 1,
        kind: "r".into(),
        persistence: "p".into(),
        descendants: [1].into(),
        schema_usage: true,
        columns: vec![column("id", "bigint"), column("created_at", WITH_ZONE)],
        stamps: vec![stamp(default)],
        indexes: vec![
            Index {
                relation: "bookings".into(),
                name: "bookings_pkey".into(),
                unique: true,
                compares_as_columns: true,
                ordered: false,
                columns: vec!["id".into()],
            },
            Index {
                relation: "bookings".into(),
                name: "bookings_created_at_id_idx".into(),
                unique: false,
                compares_as_columns: true,
                ordered: true,
                columns: vec!["created_at".into(), "id".into()],
            },
        ],
        indexed: vec!["bookings".into()],
        role: "relay".into(),
        ..Table::default()
    }
}

fn codes(verdict: &Verdict, level: Level) -> Vec<&'static str> {
    verdict.findings.iter().filter(|finding| finding.level == level).map(|finding| finding.code).collect()
}

#[test]
fn transaction_start_and_unknown_expressions_need_the_rule_transactions() {
    for default in [
        "now()",
        "CURRENT_TIMESTAMP",
        "CURRENT_TIMESTAMP(3)",
        "transaction_timestamp()",
        "my_clock()",
        "'2020-01-01'::timestamptz",
    ] {
        let verdict = judge(&table(default), &config());
        assert_eq!((verdict.rule, verdict.certainty), (Rule::Transactions, Certainty::Unproven), "{default}");
    }
    let mut none = table("x");
    none.stamps[0].default = None;
    assert_eq!(judge(&none, &config()).rule, Rule::Transactions);
}

// Guarantee: horizon.weakest
#[test]
fn the_weakest_relation_of_the_family_decides() {
    let mut table = table("clock_timestamp()");
    table.stamps[0].guard = stamped();
    table.stamps.push(stamp("now()"));
    assert_eq!(judge(&table, &config()).rule, Rule::Transactions);
}

// Guarantee: horizon.refused-tables
#[test]
fn explicit_writers_where_it_loses_rows_is_refused() {
    let verdict = judge(&table("now()"), &Stream { horizon: RuleChoice::Writers, ..config() });
    assert_eq!(codes(&verdict, Level::Error), ["horizon_too_weak"]);
}

#[test]
fn precision_casts_are_seen_through() {
    let mut table = table("(clock_timestamp())::timestamp(3) with time zone");
    table.columns[1].modifier = 3;
    assert_eq!(judge(&table, &config()).rule, Rule::Writers);
    let column = Column { modifier: 3, ..Column::default() };
    assert_eq!(precision(Some(&column)), Duration::from_millis(1));
    assert_eq!(precision(None), Duration::from_micros(1));
}

#[test]
fn timestamp_without_zone_counts_only_with_the_stated_zone_in_its_default() {
    let config = Stream { time_zone: Some("UTC".into()), ..config() };
    let with = |default: &str| {
        let mut table = table(default);
        table.columns[1].type_name = WITHOUT_ZONE.into();
        table.zone_fixed = Some(true);
        judge(&table, &config).rule
    };
    assert_eq!(with("(clock_timestamp() AT TIME ZONE 'UTC'::text)"), Rule::Writers);
    assert_eq!(with("clock_timestamp()"), Rule::Transactions, "each session's local time");
    assert_eq!(with("(clock_timestamp() AT TIME ZONE 'Europe/Berlin'::text)"), Rule::Transactions);
}

// Guarantee: horizon.refused-tables
#[test]
fn what_would_skip_rows_is_an_error_with_its_fix() {
    type Spoil = fn(&mut Table);
    let cases: [(&str, Spoil); 15] = [
        ("column_missing", |t| t.columns.retain(|c| c.name != "id")),
        ("column_nullable", |t| t.columns[1].nullable_in.push("bookings_child".into())),
        ("column_type", |t| t.columns[0].type_name = "numeric".into()),
        ("column_type", |t| t.columns[1].type_name = WITHOUT_ZONE.into()),
        ("not_unique", |t| t.indexes[0].unique = false),
        ("privilege_missing", |t| t.columns[0].readable = false),
        ("privilege_missing", |t| t.schema_usage = false),
        ("row_security", |t| t.row_security = true),
        ("table_kind", |t| t.kind = "v".into()),
        ("table_kind", |t| t.kind = "f".into()),
        ("table_kind", |t| t.persistence = "t".into()),
        ("table_kind", |t| t.foreign.push("bookings_archive".into())),
        ("table_kind", |t| t.temporary.push("bookings_scratch".into())),
        ("not_unique", |t| t.indexed.push("bookings_child".into())),
        ("table_subscribed", |t| t.subscribed.push("bookings".into())),
    ];
    for (code, spoil) in cases {
        let mut table = table("clock_timestamp()");
        spoil(&mut table);
        let verdict = judge(&table, &config());
        let found = verdict.findings.iter().find(|finding| finding.level == Level::Error && finding.code == code);
        let found = found.unwrap_or_else(|| panic!("{code} is not found: {:?}", verdict.findings));
        assert!(found.fix_sql.is_some() || found.fix_setting.is_some(), "{code} has no fix");
    }
}

#[test]
fn missing_index_and_random_ids_are_warned_of() {
    let mut table = table("clock_timestamp()");
    table.indexes.pop();
    table.columns[0].type_name = "uuid".into();
    let verdict = judge(&table, &config());
    assert_eq!(
        codes(&verdict, Level::Warn),
        ["index_missing", "tie_break_random", "created_at_unproven", "late_rows_unswept"]
    );
}

// Guarantee: horizon.rounded-default
#[test]
fn a_default_rounded_to_less_than_the_column_keeps_is_not_the_clock() {
    for (default, modifier, rule) in [
        ("(clock_timestamp())::timestamp(0) with time zone", -1, Rule::Transactions),
        ("(clock_timestamp())::timestamp(2) with time zone", 3, Rule::Transactions),
        ("(clock_timestamp())::timestamp(3) with time zone", 3, Rule::Writers),
        ("(clock_timestamp())::timestamp(6) with time zone", -1, Rule::Writers),
        ("(clock_timestamp())::timestamp(3) without time zone", 3, Rule::Transactions),
        ("(clock_timestamp() - '00:00:01'::interval)", -1, Rule::Transactions),
        ("public.clock_timestamp()", -1, Rule::Transactions),
    ] {
        let mut table = table(default);
        table.columns[1].modifier = modifier;
        assert_eq!(judge(&table, &config()).rule, rule, "{default} in a column of precision {modifier}");
    }
}

// Guarantee: horizon.refused-tables
#[test]
fn tables_that_inherit_need_their_own_indexes_and_are_warned_of() {
    let mut table = table("clock_timestamp()");
    table.indexed.push("bookings_child".into());
    let verdict = judge(&table, &config());
    assert_eq!(codes(&verdict, Level::Error), ["not_unique"]);
    assert_eq!(
        codes(&verdict, Level::Warn),
        ["inheritance_not_unique", "index_missing", "created_at_unproven", "late_rows_unswept"]
    );
    let fix = verdict.findings[0].fix_sql.clone().expect("a fix");
    assert_eq!(fix, "CREATE UNIQUE INDEX CONCURRENTLY ON bookings_child (\"created_at\", \"id\");");
}

#[test]
fn the_fix_names_the_weakest_relation_and_fits_its_triggers() {
    let fix = |table: &Table, config: &Stream| {
        let verdict = judge(table, config);
        let found = verdict.findings.into_iter().find(|finding| finding.code == "created_at_unproven");
        found.and_then(|finding| finding.fix_sql).expect("a fix")
    };
    let mut table = table("clock_timestamp()");
    let leaf =
        Guard { relation: 2, name: "leaf".into(), last: Some("a".into()), update_trigger: true, ..Guard::default() };
    table.stamps.push(Stamp { guard: leaf, ..stamp("now()") });
    let sql = fix(&table, &config());
    assert!(sql.starts_with("ALTER TABLE leaf ALTER COLUMN \"created_at\" SET DEFAULT clock_timestamp(); "), "{sql}");
    assert!(sql.contains("BEFORE INSERT OR UPDATE ON leaf"), "a trigger bound to the column sleeps: {sql}");
    assert!(sql.contains("ALTER TABLE bookings ENABLE ALWAYS"), "and all other relations: {sql}");

    let mut renamed = self::table("clock_timestamp()");
    renamed.columns[1].name = "at".into();
    let sql = fix(&renamed, &Stream { created_at: "at".into(), ..config() });
    assert_eq!(
        sql,
        "REVOKE INSERT, UPDATE ON bookings FROM PUBLIC, \"app\"; GRANT INSERT (\"id\"), UPDATE (\"id\") ON bookings TO \"app\";"
    );
}

#[test]
fn the_rule_that_is_in_force_is_the_one_that_is_told() {
    let mut table = table("clock_timestamp()");
    table.stamps[0].guard = stamped();
    let verdict = judge(&table, &Stream { horizon: RuleChoice::Transactions, ..config() });
    assert_eq!((verdict.rule, verdict.certainty), (Rule::Transactions, Certainty::Proven));
    assert!(verdict.findings[0].message.ends_with("rule transactions, proven"));
}

#[test]
fn the_window_alone_is_warned_of_and_never_proven() {
    let mut table = table("clock_timestamp()");
    table.stamps[0].guard = stamped();
    let verdict = judge(&table, &Stream { horizon: RuleChoice::Window, ..config() });
    assert_eq!((verdict.rule, verdict.certainty), (Rule::Window, Certainty::Unproven));
    assert_eq!(codes(&verdict, Level::Warn), ["horizon_window", "late_rows_unswept"]);
}
