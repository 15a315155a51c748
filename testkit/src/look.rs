//! Looking on while something goes its way: the view shows the present meanwhile.

use std::time::Duration;

use tokio::time::Instant;

use super::view::View;

/// Between two looks at everything.
const LOOK: Duration = Duration::from_millis(200);

/// How long everything may take to settle when nothing fails any more: some waits for the claim of a replica that is no
/// more, some for its next try.
pub(super) const SETTLING: Duration = Duration::from_secs(60);

/// Looks on until `end`.
pub(super) async fn until(
    view: &mut View,
    end: Instant,
    present: impl AsyncFn() -> anyhow::Result<Vec<String>>,
) -> anyhow::Result<()> {
    while Instant::now() < end {
        view.show(present().await?);
        tokio::time::sleep_until(end.min(Instant::now() + LOOK)).await;
    }
    Ok(())
}

/// Looks on until everything has settled, and notes when it does not.
pub(super) async fn settle(
    view: &mut View,
    settled: impl AsyncFn() -> anyhow::Result<bool>,
    present: impl AsyncFn() -> anyhow::Result<Vec<String>>,
) -> anyhow::Result<()> {
    let patience = Instant::now() + SETTLING;
    while Instant::now() < patience {
        if settled().await? {
            return Ok(());
        }
        view.show(present().await?);
        tokio::time::sleep(LOOK).await;
    }
    view.note(&format!("not everything has settled within {SETTLING:?}"));
    Ok(())
}
