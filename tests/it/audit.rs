//! What relays pass is compared with the tables: rows that commit behind the position of a table without a column `txid` are found, and
//! nothing else is taken for such a row.

mod column;
mod keep;
mod stage;
mod storm;

use std::time::Duration;

use tokio_postgres::Client;

use self::stage::Stage;
use crate::support::outside::{json, standing, stdout_relay};
use crate::support::{Process, bookings, database, eventually, outbox_relay, toml};

/// `created_at` as the application sets it.
const OWN: &str = "timestamptz NOT NULL DEFAULT clock_timestamp()";
/// As long as a replica may take to look for slices that are due, and for what follows.
const LOOKS: Duration = Duration::from_secs(20);

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// Whether a slice has rows: its last 104 bytes are its sums, which begin with their number.
const HAS_ROWS: &str = "substr(audit, octet_length(audit) - 103, 8) <> '\\x0000000000000000'";

/// The slice that is open ends with the next advance, as after a minute: it begins in the year 2000.
async fn let_slices_end(owner: &Client) -> u64 {
    let begun = "overlay(audit PLACING '\\x0000000000000000'::bytea FROM 2 FOR 8)";
    owner.execute(&format!("UPDATE outbox.cursor SET audit = {begun} WHERE {HAS_ROWS}"), &[]).await.unwrap()
}

/// Whether rows are in a slice that has not ended.
async fn is_open(owner: &Client) -> bool {
    let open = format!("SELECT EXISTS (SELECT FROM outbox.cursor WHERE {HAS_ROWS})");
    owner.query_one(&open, &[]).await.unwrap().get(0)
}

/// All that have ended are due, as after a minute.
async fn let_slices_be_due(owner: &Client) {
    run(owner, "UPDATE outbox.audit_slice SET check_at = clock_timestamp()").await;
}

// Guarantee: audit.delivered
#[tokio::test(flavor = "multi_thread")]
async fn rows_behind_the_position_are_found_named_and_delivered_late_once() {
    let stage = Stage::new("").await;
    stage.fill(5).await;
    let late = stage.insert_late(4).await;
    stage.compares(5).await;
    stage.has_printed(10).await;
    assert_eq!(stage.printed()[6..], late, "in their order");
    assert_eq!(stage.counted("late").await, "1");
    let (_, out, _) = outbox_relay(&stage.text, &["status", "-o", "json"]).await;
    assert_eq!(json(&out)["cursors"][0]["late_rows"], 4, "{out}");
    stage.compares_again().await;
    assert_eq!(stage.counted("equal").await, "1", "what was found belongs to the slice");
    assert_eq!(stage.printed().len(), 10, "once");
    let log = stage.process.log();
    assert!(log.contains("rows have become visible behind the position"), "{log}");
}

// Guarantee: audit.transactions
#[tokio::test(flavor = "multi_thread")]
async fn two_large_transactions_behind_the_position_are_found_as_wholes() {
    // A row's transaction is read through the root of a partitioned table, too.
    for stage in [Stage::new("").await, Stage::partitioned().await] {
        stage.fill(4).await;
        let late = [stage.insert_late(300).await, stage.insert_late(200).await].concat();
        stage.compares(4).await;
        stage.has_printed(505).await;
        let mut printed = stage.printed().split_off(5);
        printed.sort();
        assert!(printed.iter().eq(late.iter().collect::<std::collections::BTreeSet<_>>()), "{}", stage.process.log());
        stage.compares_again().await;
        assert_eq!((stage.counted("late").await, stage.counted("equal").await), ("1".to_owned(), "1".to_owned()));
        assert_eq!(stage.printed().len(), 505, "once");
    }
}

// Guarantee: audit.unnamed
#[tokio::test(flavor = "multi_thread")]
async fn more_late_rows_than_can_be_named_are_said_aloud() {
    let stage = Stage::new("").await;
    stage.fill(4).await;
    for _ in 0..30 {
        stage.insert_late(1).await;
    }
    stage.compares(4).await;
    assert_eq!(stage.counted("unnamed").await, "1");
    let log = stage.process.log();
    let said = log.lines().find(|line| line.contains("which ones cannot be told")).unwrap_or_else(|| panic!("{log}"));
    println!("{said}");
    assert!(said.contains("\"rows\":30") && said.contains("ERROR"), "{said}");
}

// Guarantee: audit.no-alarm
#[tokio::test(flavor = "multi_thread")]
async fn deleted_changed_and_replaced_rows_are_no_late_rows() {
    let stage = Stage::new("").await;
    stage.fill(9).await;
    run(
        &stage.owner,
        "DELETE FROM public.bookings WHERE id IN (3, 4); UPDATE public.bookings SET payload = 'other'; \
         WITH again AS (DELETE FROM public.bookings WHERE id = 5 RETURNING *) \
         INSERT INTO public.bookings OVERRIDING SYSTEM VALUE SELECT * FROM again",
    )
    .await;
    stage.compares(9).await;
    assert_eq!(stage.counted("gone").await, "1");
    run(&stage.owner, "DELETE FROM public.bookings").await;
    stage.compares_again().await;
    let results = (stage.counted("gone").await, stage.counted("late").await, stage.counted("unnamed").await);
    assert_eq!((results.1.as_str(), results.2.as_str()), ("0", "0"), "{results:?}");
    assert_eq!(stage.printed().len(), 10, "nothing comes again");
}

// Guarantee: audit.halt
#[tokio::test(flavor = "multi_thread")]
async fn late_row_halts_the_relay_where_that_is_the_policy() {
    let stage = Stage::new("on_late_row = \"halt\"").await;
    stage.fill(4).await;
    stage.insert_late(1).await;
    stage.compares(4).await;
    let halted = async || {
        standing(&stage.owner, "a").await.is_some_and(|(_, halted, _, error)| halted && error["code"] == "late_row")
    };
    eventually(LOOKS, halted).await;
    assert_eq!(stage.printed().len(), 5, "it is not delivered");
    for verb in [["dead-letter", "redrive", "--cursor", "a", "--yes"].as_slice(), &["cursor", "resume", "a"]] {
        let (code, _, log) = outbox_relay(&stage.text, verb).await;
        assert_eq!(code, Some(0), "{log}");
    }
    stage.has_printed(6).await;
    assert_eq!(stage.printed()[5], "5*");
}

// Guarantee: audit.moved
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_an_operator_passes_and_those_of_another_table_are_in_no_slice() {
    let stage = Stage::new("").await;
    stage.fill(4).await;
    let (code, _, log) = outbox_relay(&stage.text, &["cursor", "pause", "a"]).await;
    assert_eq!(code, Some(0), "{log}");
    stage.insert(20).await;
    let (code, _, log) = outbox_relay(&stage.text, &["cursor", "seek", "a", "--now", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, _, log) = outbox_relay(&stage.text, &["cursor", "resume", "a"]).await;
    assert_eq!(code, Some(0), "{log}");
    stage.insert(1).await;
    stage.has_printed(5).await;
    stage.compares(5).await;
    let results = (stage.counted("late").await, stage.counted("unnamed").await);
    assert_eq!((results.0.as_str(), results.1.as_str()), ("0", "0"), "{results:?}");
    // Another table under the name: what was passed of the first says nothing of it.
    let replaced = "ALTER TABLE public.bookings RENAME TO old; CREATE TABLE public.bookings (LIKE public.old INCLUDING ALL); \
                    INSERT INTO public.bookings OVERRIDING SYSTEM VALUE SELECT id + 100, created_at, payload FROM public.old; \
                    GRANT SELECT ON public.bookings TO relay";
    run(&stage.owner, replaced).await;
    let slices = "SELECT count(*) FROM outbox.audit_slice";
    let count = async || stage.owner.query_one(slices, &[]).await.unwrap().get::<_, i64>(0);
    assert!(count().await > 0);
    let_slices_be_due(&stage.owner).await;
    let halted = async || standing(&stage.owner, "a").await.is_some_and(|(_, halted, ..)| halted);
    eventually(LOOKS, halted).await;
    tokio::time::sleep(LOOKS / 2).await; // as long as a comparison would take to begin
    let (code, _, log) = outbox_relay(&stage.text, &["cursor", "adopt", "a", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(LOOKS, async || count().await == 0).await;
    assert_eq!(stage.counted("late").await, "0");
    let letters = "SELECT count(*) FROM outbox.dead_letter";
    assert_eq!(stage.owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0), 0);
}

// Guarantee: audit.again
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_again_are_not_taken_for_late() {
    let stage = Stage::new("").await;
    stage.fill(4).await;
    stage.insert_late(1).await;
    let_slices_end(&stage.owner).await;
    stage.insert(1).await;
    stage.has_printed(5).await;
    // The late row comes with the others, because an operator has them sent again.
    let first: String =
        stage.owner.query_one("SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM bookings WHERE id = 2", &[]).await.unwrap().get(0);
    let (code, _, log) = outbox_relay(&stage.text, &["cursor", "seek", "a", "--at", &first, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    stage.has_printed(10).await;
    let printed = stage.printed().len();
    stage.compares(printed).await;
    assert_eq!((stage.counted("late").await.as_str(), stage.counted("equal").await.as_str()), ("0", "1"));
    assert!(!stage.printed().iter().any(|id| id.ends_with('*')), "{:?}", stage.printed());
}

// Guarantee: audit.rest
#[tokio::test(flavor = "multi_thread")]
async fn slice_of_a_table_that_rests_ends_by_itself() {
    let stage = Stage::new("").await;
    stage.fill(4).await;
    stage.insert_late(1).await;
    run(&stage.owner, "UPDATE outbox.cursor SET advanced_at = advanced_at - interval '1 minute'").await;
    stage.compares_again().await;
    stage.has_printed(5).await;
    assert_eq!(stage.printed()[4], "5*");
}

// Guarantee: audit.attached
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_partition_that_is_attached_wait_for_an_operator() {
    let stage = Stage::partitioned().await;
    stage.fill(4).await;
    let_slices_end(&stage.owner).await;
    stage.insert(1).await;
    stage.has_printed(5).await;
    let attached = "CREATE TABLE public.high (LIKE public.bookings INCLUDING DEFAULTS INCLUDING CONSTRAINTS); \
                    GRANT SELECT ON public.high TO relay; \
                    INSERT INTO public.high SELECT id + 1000, created_at, payload FROM public.bookings WHERE id IN (2, 3); \
                    ALTER TABLE public.bookings ATTACH PARTITION public.high FOR VALUES FROM (1000) TO (2000); \
                    UPDATE outbox.audit_slice SET check_at = clock_timestamp()";
    run(&stage.owner, attached).await;
    let halted = async || standing(&stage.owner, "a").await.is_some_and(|(_, halted, ..)| halted);
    eventually(LOOKS * 2, halted).await;
    let letters = "SELECT count(*) FROM outbox.dead_letter";
    assert_eq!(stage.owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0), 0);
    let (code, _, log) = outbox_relay(&stage.text, &["cursor", "adopt", "a", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    stage.insert(1).await;
    stage.has_printed(6).await;
    stage.compares(6).await;
    assert_eq!((stage.counted("late").await.as_str(), stage.counted("equal").await.as_str()), ("0", "1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_recorded_where_the_audit_is_off() {
    let database = database().await;
    let owner = bookings(&database, OWN).await;
    let text = format!("{}\n[audit]\nenabled = false\n", toml(&database, "relay", None, &stdout_relay("a", "")));
    let stage = Stage { process: Process::spawn(&text, &["run"]), database, owner, text };
    stage.fill(4).await;
    let recorded = "SELECT count(audit) + (SELECT count(*) FROM outbox.audit_slice) FROM outbox.cursor";
    assert_eq!(stage.owner.query_one(recorded, &[]).await.unwrap().get::<_, i64>(0), 0);
    drop(stage.database);
}
