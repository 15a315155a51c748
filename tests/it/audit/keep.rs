//! `[audit] keep`: slices stay for `verify` after their last comparison, and are deleted then; rows that came late are found once.

use std::time::Duration;

use outbox_relay::cursor::audit_slices::too_old;

use super::{LOOKS, OWN, Stage, let_slices_end, run};
use crate::support::outside::{json, stdout_relay};
use crate::support::{PATIENCE, Process, bookings, database, eventually, outbox_relay, sessions, toml};

const KEEP: &str = "[audit]\nkeep = \"7d\"\n";
const SWEPT: &str = "ALTER TABLE public.bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                     CREATE INDEX ON public.bookings (txid, created_at, id)";

/// A relay that prints its table, changed by `sql` before, with `sections` in its configuration.
async fn stage(sql: &str, sections: &str) -> Stage {
    let database = database().await;
    let owner = bookings(&database, OWN).await;
    run(&owner, sql).await;
    let text = format!("{}{sections}", toml(&database, "relay", None, &stdout_relay("a", "")));
    Stage { process: Process::spawn(&text, &["run"]), database, owner, text }
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
    let slices = "INSERT INTO outbox.audit_slice \
                  (cursor, reads, after_created_at, up_to_created_at, row_count, sums, ended_at, checks, check_at) \
                  SELECT 'a', 1, now(), now(), 1, ''::bytea, now() - ended, checks, now() - interval '1 minute' FROM (VALUES \
                  (interval '25 hours', 0), (interval '23 hours', 0), (interval '3 hours', 1), (interval '8 days', 2)) \
                  AS s (ended, checks)";
    run(&owner, slices).await;
    let week = Some(Duration::from_secs(7 * 86_400));
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
    assert_eq!(too_old(&session, None).await.unwrap(), [("a".to_owned(), 1)]);
    assert_eq!(left("true").await, 0);
    let many = "INSERT INTO outbox.audit_slice \
                (cursor, reads, after_created_at, up_to_created_at, row_count, sums, ended_at, checks, check_at) \
                SELECT 'a', 1, now(), now(), 1, ''::bytea, now() - interval '3 hours', 1, now() FROM generate_series(1, 1500)";
    run(&owner, many).await;
    assert_eq!(too_old(&session, None).await.unwrap(), []);
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
