use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::admin::page::tests::calm;

/// A database that counts what it is asked, and answers when it may.
#[derive(Debug)]
struct Counting {
    looks: Arc<AtomicUsize>,
    rests: Arc<AtomicUsize>,
    answers: bool,
    took: Duration,
}

#[async_trait]
impl Source for Counting {
    async fn look(&self) -> anyhow::Result<Overview> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.took).await;
        if self.answers { Ok(calm(3)) } else { anyhow::bail!("the schema has another version") }
    }

    async fn rest(&self) {
        self.rests.fetch_add(1, Ordering::SeqCst);
    }
}

fn board(answers: bool, took: Duration) -> (Arc<Board>, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (looks, rests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let source = Counting { looks: Arc::clone(&looks), rests: Arc::clone(&rests), answers, took };
    (Board::new(Box::new(source)), looks, rests)
}

#[tokio::test]
async fn many_viewers_share_one_look_and_without_a_viewer_there_is_none() {
    let (board, looks, _) = board(true, Duration::from_millis(50));
    assert_eq!(looks.load(Ordering::SeqCst), 0, "none is made ahead");
    let viewers: Vec<_> =
        (0..100).map(|_| Arc::clone(&board)).map(|board| async move { board.standing().await }).collect();
    for standing in futures_util::future::join_all(viewers).await {
        assert!(standing.seen.is_some() && standing.trouble.is_none());
    }
    assert_eq!(looks.load(Ordering::SeqCst), 1);
    tokio::time::sleep(FRESH * 2).await;
    assert_eq!(looks.load(Ordering::SeqCst), 1, "no further one while no viewer asks");
    board.standing().await;
    assert_eq!(looks.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_look_that_hangs_delays_a_page_for_two_seconds_at_most() {
    let (board, looks, _) = board(true, Duration::from_secs(3600));
    let begun = Instant::now();
    let standing = board.standing().await;
    assert!(standing.seen.is_none() && begun.elapsed() < PATIENCE * 2);
    let begun = Instant::now();
    board.standing().await;
    assert!(begun.elapsed() < PATIENCE, "the second viewer does not wait for what has hung for so long");
    assert_eq!(looks.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_look_that_fails_is_told_without_delay_and_closes_its_session() {
    let (board, _, rests) = board(false, Duration::ZERO);
    let standing = board.standing().await;
    let trouble = standing.trouble.expect("it failed");
    assert!(!trouble.silent && trouble.what.contains("another version"), "{trouble:?}");
    assert_eq!(rests.load(Ordering::SeqCst), 1);
    let begun = Instant::now();
    assert!(board.standing().await.trouble.is_some());
    assert!(begun.elapsed() < PATIENCE);
}

#[tokio::test]
async fn failure_of_some_time_ago_is_not_shown_without_another_look() {
    let (board, looks, _) = board(false, Duration::ZERO);
    assert!(board.standing().await.trouble.is_some());
    board.state().failed = Instant::now().checked_sub(OUTDATED * 2);
    assert!(board.standing().await.trouble.is_some());
    assert_eq!(looks.load(Ordering::SeqCst), 2);
}
