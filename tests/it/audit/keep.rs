//! `[audit] keep`: slices stay for `verify` after their last comparison, and are deleted then; rows that came late are found once.

use std::time::Duration;

use outbox_relay::audit::MADE_UP_FOR;
use outbox_relay::cursor::audit_slices::{compared, take, too_old};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::{LOOKS, OWN, Stage, let_slices_be_due, let_slices_end, run};
use crate::support::outside::{json, stdout_relay};
use crate::support::{PATIENCE, Process, bookings, database, eventually, outbox_relay, sessions, toml};

const KEEP: &str = "[audit]\nkeep = \"7d\"\n";
const DAY: Duration = Duration::from_secs(86_400);
const SWEPT: &str = "ALTER TABLE public.bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                     CREATE INDEX ON public.bookings (txid, created_at, id)";

/// Ids that are no numbers.
const TEXTS: &str = "ALTER TABLE bookings ALTER COLUMN id DROP IDENTITY; ALTER TABLE bookings ALTER COLUMN id TYPE text; \
                     ALTER TABLE bookings ALTER COLUMN id SET DEFAULT gen_random_uuid()::text";
/// All rows match it.
const FILTER: &str = "where = { customer = \"c\" }\n[relay.sink";

/// A relay that prints its table, changed by `sql` before, with `sections` in its configuration.
async fn stage(sql: &str, sections: &str) -> Stage {
    staged(sql, &format!("{}{sections}", stdout_relay("a", ""))).await
}

/// The same of a relay as it is written.
async fn staged(sql: &str, relay: &str) -> Stage {
    let database = database().await;
    let owner = bookings(&database, OWN).await;
    run(&owner, sql).await;
    let text = toml(&database, "relay", None, relay);
    Stage { process: Process::spawn(&text, &["run"]), database, owner, text }
}

/// Writes slices, in the order of their ends: of a cursor, how long ago they ended, how often they were compared, and in what time they are
/// due.
async fn write(owner: &Client, slices: &str) {
    let sql = format!(
        "INSERT INTO outbox.audit_slice \
         (cursor, reads, after_created_at, up_to_created_at, row_count, sums, ended_at, checks, check_at) \
         SELECT s.cursor, 1, now(), now(), 1, ''::bytea, now() - ended::interval, checks, now() + due::interval \
         FROM (VALUES {slices}) AS s (cursor, ended, checks, due)"
    );
    run(owner, &sql).await;
}

/// The slices that are left, each with its cursor and how often it was compared.
async fn left(owner: &Client) -> Vec<String> {
    let sql = "SELECT s.cursor || ' ' || s.checks FROM outbox.audit_slice AS s ORDER BY s.id";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

impl Stage {
    /// How many slices answer to a condition.
    async fn slices(&self, condition: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM outbox.audit_slice WHERE {condition}");
        self.owner.query_one(&sql, &[]).await.unwrap().get(0)
    }

    /// A slice of four rows has ended; its number.
    async fn ended(&self) -> i64 {
        self.fill(3).await;
        eventually(PATIENCE, async || let_slices_end(&self.owner).await > 0).await;
        self.insert(1).await;
        self.has_printed(4).await;
        eventually(PATIENCE, async || self.slices("true").await == 1).await;
        self.owner.query_one("SELECT id FROM outbox.audit_slice", &[]).await.unwrap().get(0)
    }
}

// Guarantee: audit.keep
#[tokio::test(flavor = "multi_thread")]
async fn kept_slices_stay_for_their_time_after_the_last_comparison_and_no_longer() {
    for (sections, stays) in [(KEEP, true), ("", false)] {
        let stage = stage("", sections).await;
        let id = stage.ended().await;
        // More than an hour old: the comparison that is due is the last one.
        let aged =
            "UPDATE outbox.audit_slice SET ended_at = ended_at - interval '2 hours', check_at = clock_timestamp()";
        run(&stage.owner, aged).await;
        if !stays {
            eventually(LOOKS, async || stage.slices(&format!("id = {id}")).await == 0).await;
            continue;
        }
        let kept = format!("id = {id} AND checks = 1 AND check_at = ended_at + interval '168 hours'");
        eventually(LOOKS, async || stage.slices(&kept).await == 1).await;
        assert_eq!(stage.counted("equal").await, "1");
        let over = "UPDATE outbox.audit_slice SET ended_at = ended_at - interval '168 hours', check_at = check_at - interval '168 hours'";
        run(&stage.owner, over).await;
        eventually(LOOKS, async || stage.slices(&format!("id = {id}")).await == 0).await;
        assert_eq!(stage.counted("equal").await, "1", "it is not compared again");
    }
}

// Guarantee: audit.keep
#[tokio::test(flavor = "multi_thread")]
async fn slices_that_were_never_compared_are_given_up_and_kept_all_the_same() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let session = sessions(&database, "relay", "audit").open().await.unwrap();
    write(
        &owner,
        "('a', '8 days', 2, '-1 minute'), ('a', '25 hours', 0, '-1 minute'), ('a', '23 hours', 0, '-1 minute'), \
         ('a', '3 hours', 1, '-1 minute')",
    )
    .await;
    let week = 7 * DAY;
    assert_eq!(too_old(&session, week).await.unwrap(), [("a".to_owned(), 1)], "one was never compared in time");
    let left = async |condition: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM outbox.audit_slice WHERE {condition}");
        owner.query_one(&sql, &[]).await.unwrap().get(0)
    };
    assert_eq!((left("true").await, left("check_at = ended_at + interval '168 hours'").await), (3, 2));
    assert_eq!(left("checks = 0 AND check_at < now()").await, 1, "there is still time for that one");
    assert_eq!(too_old(&session, week).await.unwrap(), [], "counted once");
    let aged =
        "UPDATE outbox.audit_slice SET ended_at = now() - interval '25 hours', check_at = now() - interval '1 minute'";
    run(&owner, aged).await;
    assert_eq!(too_old(&session, MADE_UP_FOR).await.unwrap(), [("a".to_owned(), 1)]);
    assert_eq!(left("true").await, 0);
    let many = "INSERT INTO outbox.audit_slice \
                (cursor, reads, after_created_at, up_to_created_at, row_count, sums, ended_at, checks, check_at) \
                SELECT 'a', 1, now(), now(), 1, ''::bytea, now() - interval '3 hours', 1, now() FROM generate_series(1, 1500)";
    run(&owner, many).await;
    assert_eq!(too_old(&session, MADE_UP_FOR).await.unwrap(), []);
    assert_eq!(left("true").await, 500, "some at a time");
}

// Guarantee: audit.kept-all
#[tokio::test(flavor = "multi_thread")]
async fn late_rows_of_a_table_with_txid_have_one_letter_also_where_slices_are_kept() {
    let stage = stage(SWEPT, KEEP).await;
    stage.fill(5).await;
    let late = stage.insert_late(4).await;
    stage.has_printed(9).await;
    assert_eq!(stage.printed()[5..], late, "found by their transaction");
    stage.compares(9).await;
    stage.compares_again().await;
    assert_eq!((stage.counted("equal").await.as_str(), stage.counted("late").await.as_str()), ("2", "0"));
    assert_eq!(stage.printed().len(), 10, "once");
    let letters = stage.owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!(letters.get::<_, i64>(0), 4);
    let (code, out, log) = outbox_relay(&stage.text, &["verify", "a", "-o", "json"]).await;
    assert_eq!((code, &json(&out)["rows"]["delivered"]), (Some(0), &10.into()), "{out}{log}");
}

// Guarantee: audit.keep
#[tokio::test(flavor = "multi_thread")]
async fn slice_stays_as_long_as_an_earlier_one_that_another_replica_keeps() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let session = sessions(&database, "relay", "audit").open().await.unwrap();
    // One that keeps none, and one that keeps them for a shorter time.
    for stay in [MADE_UP_FOR, DAY] {
        write(
            &owner,
            "('a', '2 days', 3, '5 days'), ('b', '25 hours', 3, '-1 minute'), ('a', '25 hours', 3, '-1 minute'), \
             ('a', '25 hours', 3, '6 days'), ('a', '25 hours', 3, '-1 minute'), ('b', '25 hours', 3, '-1 minute')",
        )
        .await;
        assert_eq!(too_old(&session, stay).await.unwrap(), []);
        assert_eq!(left(&owner).await, ["a 3", "a 4", "a 3", "a 4"], "nothing before those of b is kept");
        let due = "SELECT count(*) FROM outbox.audit_slice WHERE check_at < now() + interval '4 days'";
        assert_eq!(owner.query_one(due, &[]).await.unwrap().get::<_, i64>(0), 0, "none is looked at before it can go");
        run(&owner, "UPDATE outbox.audit_slice SET check_at = now()").await;
        assert_eq!(too_old(&session, stay).await.unwrap(), []);
        assert_eq!(left(&owner).await, Vec::<String>::new(), "all together");
    }
}

/// It may be kept from then on: the rows of one that is not there behind it were never passed.
// Guarantee: audit.keep
#[tokio::test(flavor = "multi_thread")]
async fn no_slice_is_deleted_before_an_earlier_one_that_another_replica_may_still_keep() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let session = sessions(&database, "relay", "audit").open().await.unwrap();
    // Of `a` the first was never compared, after a pause of all replicas; the first of `b` is another replica's now.
    write(
        &owner,
        "('a', '3 hours', 0, '-1 minute'), ('a', '3 hours', 1, '-1 minute'), ('b', '3 hours', 2, '-1 minute'), \
         ('b', '3 hours', 2, '-1 minute'), ('c', '3 hours', 2, '-1 minute')",
    )
    .await;
    let mut other = database.connect("postgres").await;
    let looks = other.transaction().await.unwrap();
    let first = "SELECT FROM outbox.audit_slice \
                 WHERE id = (SELECT min(id) FROM outbox.audit_slice WHERE cursor = 'b') FOR UPDATE";
    looks.query(first, &[]).await.unwrap();
    assert_eq!(too_old(&session, MADE_UP_FOR).await.unwrap(), []);
    assert_eq!(left(&owner).await, ["a 0", "a 2", "b 2", "b 3"]);
    looks.rollback().await.unwrap();
    let slice = take(&session, &["a", "b"], Duration::from_secs(60)).await.unwrap().expect("one is due");
    assert_eq!((slice.cursor.as_str(), slice.checks), ("a", 0), "the first comparison is made up for");
    compared(&session, &slice, 7 * DAY).await.unwrap();
    run(&owner, "UPDATE outbox.audit_slice SET check_at = now() WHERE check_at < now() + interval '1 day'").await;
    assert_eq!(too_old(&session, MADE_UP_FOR).await.unwrap(), []);
    assert_eq!(left(&owner).await, ["a 1", "a 3"], "what follows the one that is kept");
}

// Guarantee: audit.keep
#[tokio::test(flavor = "multi_thread")]
async fn slices_of_before_a_change_of_the_filter_stay_for_their_time() {
    let with = format!("{}{KEEP}", stdout_relay("a", "").replace("[relay.sink", FILTER));
    let mut stage = staged("", &with).await;
    let id = stage.ended().await;
    stage.process.signal(Signal::TERM);
    stage.process.wait().await;
    let without = stage.text.replace(FILTER, "[relay.sink");
    assert_ne!(without, stage.text);
    stage.process = Process::spawn(&without, &["run"]);
    stage.insert(1).await;
    stage.has_printed(1).await;
    let_slices_be_due(&stage.owner).await;
    let kept = format!("id = {id} AND checks = 1 AND check_at = ended_at + interval '168 hours'");
    eventually(LOOKS, async || stage.slices(&kept).await == 1).await;
    let verify = async |text: &str| {
        let (code, out, log) = outbox_relay(text, &["verify", "a", "-o", "json"]).await;
        let document = json(&out);
        assert_eq!((code, &document["differences"]), (Some(1), &serde_json::json!([])), "{out}{log}");
        let left_out = document["not_compared"][0].clone();
        (document["rows"]["delivered"].as_i64(), left_out["rows"].as_i64(), left_out["reason"].to_string())
    };
    let (delivered, rows, reason) = verify(&without).await;
    assert_eq!((delivered, rows), (Some(1), Some(4)), "{reason}");
    assert!(reason.contains("of another table, order, filter or number of shards"), "{reason}");
    let (delivered, rows, reason) = verify(&stage.text).await;
    assert_eq!((delivered, rows), (Some(4), Some(1)), "the former configuration compares what it passed: {reason}");
}

// Guarantee: audit.kept-all
#[tokio::test(flavor = "multi_thread")]
async fn late_rows_that_a_slice_has_and_those_that_it_has_not_are_told_apart_whatever_their_ids() {
    let stage = stage(&format!("{TEXTS}; {SWEPT}"), KEEP).await;
    let late = "INSERT INTO public.bookings (created_at, payload) \
                SELECT created_at + interval '1 microsecond', 'late' FROM public.bookings ORDER BY created_at OFFSET 1 LIMIT 1";
    stage.fill(5).await;
    run(&stage.owner, late).await;
    stage.has_printed(6).await;
    stage.compares(6).await;
    assert_eq!(stage.slices("row_count = 7").await, 1, "six were passed, and the audit has found the late one, too");
    // An hour later no comparison adds what comes late to the slice.
    let aged = "UPDATE outbox.audit_slice SET checks = 3, ended_at = ended_at - interval '2 hours', \
                check_at = clock_timestamp() + interval '6 days'";
    run(&stage.owner, aged).await;
    for _ in 0..30 {
        run(&stage.owner, late).await;
    }
    stage.has_printed(37).await;
    let sent = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'redriven'";
    eventually(PATIENCE, async || stage.owner.query_one(sent, &[]).await.unwrap().get::<_, i64>(0) == 31).await;
    let (code, out, log) = outbox_relay(&stage.text, &["verify", "a", "-o", "json"]).await;
    assert_eq!((code, &json(&out)["rows"]["delivered"]), (Some(0), &37.into()), "{out}{log}");
}

// Guarantee: audit.kept-all
#[tokio::test(flavor = "multi_thread")]
async fn check_says_what_is_kept_and_that_at_most_once_records_nothing() {
    let database = database().await;
    let owner = bookings(&database, OWN).await;
    run(&owner, SWEPT).await;
    let filtered = stdout_relay("filtered", "").replace("[relay.sink", "where = { customer = \"c\" }\n[relay.sink");
    let relays =
        [stdout_relay("swept", ""), stdout_relay("once", "guarantee = \"at_most_once\""), filtered, KEEP.to_owned()];
    let text = toml(&database, "relay", None, &relays.concat());
    let (_, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    for (relay, expected) in [
        (
            "swept",
            "what is passed is compared with the table after a minute, ten minutes and an hour, and kept for `verify` ([audit])",
        ),
        ("once", "what is passed is not compared with the table: its guarantee is at_most_once"),
        (
            "filtered",
            "what is passed is recorded and kept for `verify` ([audit] keep), and not compared before: its source has a where",
        ),
    ] {
        let findings = document["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["relay"] == relay && found["code"] == "audit");
        assert_eq!(found.unwrap()["message"], expected, "{out}{log}");
    }
}
