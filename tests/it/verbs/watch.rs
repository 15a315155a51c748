//! `status --watch` and `--max-lag`.

use rustix::process::Signal;

use super::{ends, insert};
use crate::support::outside::{json, printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

#[tokio::test(flavor = "multi_thread")]
async fn watch_shows_the_cursors_again_and_again_and_ends_with_0() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    let mut watch = Process::spawn(&text, &["status", "--watch"]);
    let headers = |text: &str| text.lines().filter(|line| line.starts_with("CURSOR")).count();
    eventually(PATIENCE * 2, || async { headers(&watch.out()) >= 3 }).await;
    watch.signal(Signal::INT);
    assert_eq!(watch.wait().await, Some(0), "{}", watch.log());
    assert!(!watch.out().contains('\u{1b}'), "a pipe gets no control characters");
    let mut documents = Process::spawn(&text, &["status", "--watch", "-o", "json", "--max-lag", "1h"]);
    eventually(PATIENCE * 2, || async { documents.out().lines().count() >= 2 }).await;
    documents.signal(Signal::TERM);
    assert_eq!(documents.wait().await, Some(0), "{}", documents.log());
    assert!(documents.out().lines().all(|line| json(line)["cursors"][0]["state"] == "no_replica"), "the job has ended");
}

// Guarantee: commands.max-lag
#[tokio::test(flavor = "multi_thread")]
async fn watch_ends_with_3_at_the_first_breach_and_names_the_cursor() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relays = format!("{}{}", stdout_relay("well", ""), stdout_relay("behind", ""));
    let text = toml(&database, "relay", None, &relays);
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE, || async { printed(&process, "well").len() + printed(&process, "behind").len() == 2 }).await;
    let mut watch = Process::spawn(&text, &["status", "--watch", "--max-lag", "2s"]);
    eventually(PATIENCE * 2, || async { watch.out().contains("CURSOR") }).await;
    ends(0, &text, &["cursor", "pause", "behind"]).await;
    insert(&owner, 1).await;
    assert_eq!(watch.wait().await, Some(3), "{}", watch.out());
    assert!(watch.log().starts_with("behind lags ") && watch.log().ends_with(" s, more than 2s\n"), "{}", watch.log());
}

// Guarantee: commands.max-lag
#[tokio::test(flavor = "multi_thread")]
async fn a_lag_that_is_not_known_is_a_breach() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 1).await;
    let (_, log) = ends(3, &text, &["status", "--max-lag", "1h"]).await;
    assert!(log.contains("the lag of s is not known: it has no cursor yet; `outbox-relay cursor why s`"), "{log}");
    ends(0, &text, &["run", "--once"]).await;
    ends(0, &text, &["status", "--max-lag", "1h"]).await;
    let other = toml(&database, "relay", None, &stdout_relay("other", ""));
    for args in [&["status", "--max-lag", "1h"][..], &["status", "--watch", "--max-lag", "1h"]] {
        let (code, _, log) = outbox_relay(&other, args).await;
        assert_eq!(code, Some(3), "{log}");
        assert_eq!(
            log,
            "the lag of s is not known: no relay of this configuration has it; name the cursors that are to be judged\n"
        );
    }
}
