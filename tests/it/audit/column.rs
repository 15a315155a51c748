//! A table that gets the column `txid` while what was passed of it is still to be compared.

use super::{LOOKS, Stage, is_open, let_slices_be_due, let_slices_end, run};
use crate::support::{PATIENCE, eventually};

/// The column by which late rows are found, and its index.
const SWEPT: &str = "ALTER TABLE public.bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                     CREATE INDEX ON public.bookings (txid, created_at, id)";

// Guarantee: audit.column
#[tokio::test(flavor = "multi_thread")]
async fn late_rows_of_before_the_column_are_found_by_the_audit_and_those_of_after_it_by_their_transaction() {
    let stage = Stage::new("").await;
    stage.fill(5).await;
    let before = stage.insert_late(2).await;
    eventually(PATIENCE, async || let_slices_end(&stage.owner).await > 0).await;
    stage.insert(1).await;
    stage.has_printed(6).await;
    eventually(PATIENCE, async || !is_open(&stage.owner).await).await;
    run(&stage.owner, SWEPT).await;
    // Each row is one more chance for the cursor to learn the column; none of them is late.
    let (is_swept, mut rows) = ("SELECT swept_column IS NOT NULL FROM outbox.cursor", 6);
    eventually(LOOKS, async || {
        stage.insert(1).await;
        rows += 1;
        stage.has_printed(rows).await;
        stage.owner.query_one(is_swept, &[]).await.unwrap().get(0)
    })
    .await;
    let after = stage.insert_late(1).await;
    stage.has_printed(rows + 1).await;
    assert_eq!(stage.printed()[rows..], after, "found by its transaction");

    let_slices_be_due(&stage.owner).await;
    stage.has_printed(rows + 3).await;
    assert_eq!(stage.printed()[rows + 1..], before, "the slice is compared all the same");
    stage.compares_again().await;
    assert_eq!((stage.counted("late").await.as_str(), stage.printed().len()), ("1", rows + 3), "each once");
    let letters = "SELECT count(*) FROM outbox.dead_letter WHERE error ? 'late' AND state = 'redriven'";
    let redriven = async || stage.owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0);
    eventually(PATIENCE, async || redriven().await == 3).await;
}
