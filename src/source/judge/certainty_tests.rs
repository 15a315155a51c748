//! How sure a rule is: what proves, what bounds, and what does neither.

use super::super::super::shape::Shape;
use super::*;

#[test]
fn default_is_proven_only_for_rows_that_use_it() {
    let verdict = judge(&table("clock_timestamp()"), &config());
    assert_eq!((verdict.rule, verdict.certainty), (Rule::Writers, Certainty::ProvenForDefault));
    assert_eq!(codes(&verdict, Level::Warn), ["created_at_unproven", "late_rows_unswept"]);
    let found = &verdict.findings[0];
    assert!(found.message.contains("owner boss, role app, and views, rules, triggers and SECURITY DEFINER functions"));
    assert!(found.message.ends_with("rule writers, proven for rows that use the default"), "{}", found.message);
    let sql = "CREATE TRIGGER \"zz_stamp_created_at\" BEFORE INSERT OR UPDATE OF \"created_at\" ON bookings FOR EACH ROW \
               EXECUTE FUNCTION outbox.stamp_created_at(); ALTER TABLE bookings ENABLE ALWAYS TRIGGER \"zz_stamp_created_at\";";
    let sql = format!(
        "{sql}\n-- The trigger replaces, without a warning, a created_at that a writer sends, and undoes UPDATEs of it."
    );
    assert_eq!(found.fix_sql, Some(sql));
}

// Guarantee: horizon.proven
#[test]
fn privileges_prove_nothing() {
    let mut alone = table("clock_timestamp()");
    alone.stamps[0].writers.clear();
    assert_eq!(judge(&alone, &config()).certainty, Certainty::ProvenForDefault);
}

// Guarantee: horizon.proven
#[test]
fn trigger_proves_only_last_always_and_on_a_plain_column() {
    type Spoil = fn(&mut Table);
    let cases: [(Spoil, Certainty); 6] = [
        (|_| {}, Certainty::Proven),
        (|t| t.stamps[0].guard.always = false, Certainty::ProvenForDefault),
        (|t| t.stamps[0].guard.fits = false, Certainty::ProvenForDefault),
        (|t| t.stamps[0].generated = true, Certainty::Unproven),
        (|t| t.columns[1].type_name = WITHOUT_ZONE.into(), Certainty::ProvenForDefault),
        (|t| t.stamps.push(stamp("clock_timestamp()")), Certainty::ProvenForDefault),
    ];
    for (n, (spoil, certainty)) in cases.into_iter().enumerate() {
        let mut table = table("clock_timestamp()");
        table.stamps[0].guard = stamped();
        spoil(&mut table);
        assert_eq!(judge(&table, &config()).certainty, certainty, "case {n}");
    }
    let mut stamped_now = table("now()");
    stamped_now.stamps[0].guard = stamped();
    let verdict = judge(&stamped_now, &config());
    assert_eq!((verdict.rule, verdict.certainty), (Rule::Writers, Certainty::Proven));
}

// Guarantee: horizon.bounded
#[test]
fn now_is_bounded_only_where_activity_can_be_read() {
    let mut table = table("now()");
    let verdict = judge(&table, &config());
    assert_eq!((verdict.rule, verdict.certainty), (Rule::Transactions, Certainty::Unproven));
    let found = &verdict.findings[0];
    assert!(found.message.contains("one client message with several transactions"), "{}", found.message);
    assert!(found.fix_setting.as_deref().is_some_and(|fix| fix.contains("GRANT pg_read_all_stats TO \"relay\";")));
    table.reads_activity = true;
    let verdict = judge(&table, &config());
    assert_eq!((verdict.rule, verdict.certainty), (Rule::Transactions, Certainty::Bounded));
    assert!(verdict.findings[0].message.ends_with("rule transactions, bounded by the latency window"));
    assert_eq!(verdict.findings[0].fix_setting, None);
}

#[test]
fn lower_certainty_weakens_a_shape() {
    let shape = |always: bool| {
        let mut table = table("clock_timestamp()");
        table.stamps[0].guard = Guard { always, ..stamped() };
        table.shape(&config(), &judge(&table, &config()))
    };
    let (proven, less) = (shape(true), shape(false));
    assert!(less.weakens(&proven));
    assert!(!proven.weakens(&less) && !proven.weakens(&proven));
    let transactions = Shape { rule: Rule::Transactions, ..proven.clone() };
    assert!(transactions.weakens(&proven) && proven.weakens(&transactions), "another rule always does");
}

#[test]
fn trigger_that_is_disabled_is_named_and_enabled() {
    let mut table = table("clock_timestamp()");
    table.stamps[0].guard = Guard { always: false, disabled: true, ..stamped() };
    let verdict = judge(&table, &config());
    let found = &verdict.findings[0];
    assert!(found.message.contains("; trigger zz_stamp_created_at is disabled: rule writers, "), "{}", found.message);
    let sql = "ALTER TABLE bookings ENABLE ALWAYS TRIGGER \"zz_stamp_created_at\";";
    assert_eq!(found.fix_sql.as_deref(), Some(sql), "and no second one is made");
}

#[test]
fn every_gap_has_its_fix() {
    type Spoil = fn(&mut Table);
    let cases: [(Spoil, &str); 5] = [
        (|t| t.columns[1].type_name = WITHOUT_ZONE.into(), "Correct the type"),
        (|t| t.stamps[0].generated = true, "DROP EXPRESSION"),
        (|t| t.stamps[0].guard.always = false, "ALTER TABLE bookings ENABLE ALWAYS TRIGGER \"zz_stamp_created_at\";"),
        (|t| t.stamps[0].guard.fits = false, "CREATE TRIGGER \"zzz_stamp_created_at\""),
        (|t| t.stamps[0].guard = Guard { last: Some("~".repeat(63)), ..Guard::default() }, "Rename the triggers"),
    ];
    for (spoil, fix) in cases {
        let mut table = table("clock_timestamp()");
        table.stamps[0].guard = stamped();
        spoil(&mut table);
        let verdict = judge(&table, &config());
        let found = verdict.findings.iter().find(|finding| finding.code == "created_at_unproven").expect("a gap");
        let printed = [&found.fix_sql, &found.fix_setting].map(|fix| fix.as_deref().unwrap_or_default()).concat();
        assert!(printed.contains(fix), "{fix}: {printed}");
    }
}
