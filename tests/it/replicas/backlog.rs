//! A backlog goes through producers of its own, at full rate: the promises are the same, whatever ends its holder.

use rustix::process::Signal;

use super::{Stage, stage};
use crate::support::{PATIENCE, Process, eventually};
use outbox_testkit::bookings;
use outbox_testkit::delivery::{Verdict, check, verdict};

const ROWS: usize = 240_000;

impl Stage {
    /// Rows that have waited for a while, each of its own instant.
    async fn backlog(&self) {
        let sql = format!(
            "INSERT INTO public.bookings (created_at, customer, region, phone, payload) \
             SELECT now() - interval '1 hour' + n * interval '100 us', 'c' || n % 97, 'eu', '+4912345', repeat('x', 120) \
             FROM generate_series(1, {ROWS}) AS n"
        );
        self.owner.batch_execute(&sql).await.unwrap();
    }

    /// Waits until so many more records have come.
    async fn goes_on(&self, records: usize) {
        let before = self.consumer.count();
        eventually(PATIENCE * 3, async || self.consumer.count() >= (before + records).min(ROWS)).await;
    }

    async fn assert_faithful(self, repeats: bool) {
        let committed = bookings::committed(&self.owner).await.unwrap();
        eventually(PATIENCE * 6, async || {
            let (streams, gaps) = self.consumer.look(|received| (received.streams(), received.gaps.clone()));
            check(&committed, &streams, &gaps).distinct == ROWS
        })
        .await;
        let received = self.consumer.stop().await.unwrap();
        let report = check(&committed, &received.streams(), &received.gaps);
        println!("{} duplicates", report.duplicates());
        assert_eq!(verdict(&committed, &[&report], true), Verdict::Pass, "{report:?}");
        assert!(repeats || report.duplicates() == 0, "{report:?}");
    }
}

/// The ticks of a processor that the thread has used which takes the reports of a backlog's producer.
fn reported(replica: &Process) -> u64 {
    let ticks = |task: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
        let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.strip_suffix('\n')?.split_once("(backlog) ")?.1.split(' ').collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    };
    std::fs::read_dir(format!("/proc/{}/task", replica.id())).unwrap().filter_map(ticks).sum()
}

// Guarantee: failures.backlog
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_read_at_full_rate_is_sent_once_and_in_order_by_a_producer_of_its_own() {
    let stage = stage().await;
    stage.backlog().await;
    let replica = stage.replica("r0");
    // One that rests takes its complaints once a second, which is no tick.
    eventually(PATIENCE * 6, async || reported(&replica) >= 5).await;
    stage.assert_faithful(false).await;
}

// Guarantee: failures.backlog
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_read_at_full_rate_loses_nothing_and_keeps_order_when_its_holders_are_killed_and_frozen() {
    let stage = stage().await;
    stage.backlog().await;
    let mut replicas: Vec<Process> = (0..3).map(|n| stage.replica(&format!("r{n}"))).collect();
    for (round, end) in [Signal::KILL, Signal::TERM, Signal::STOP, Signal::KILL, Signal::TERM].into_iter().enumerate() {
        stage.goes_on(20_000).await;
        let Some(holder) = stage.holder().await else { continue };
        let index = (0..3).find(|n| holder == format!("r{n}") || holder.starts_with(&format!("r{n}-"))).unwrap();
        replicas[index].signal(end);
        if end == Signal::STOP {
            eventually(PATIENCE * 3, async || stage.holder().await.is_some_and(|now| now != holder)).await;
            replicas[index].signal(Signal::CONT);
        } else {
            let code = replicas[index].wait().await;
            assert_eq!(code, (end == Signal::TERM).then_some(0), "{}", replicas[index].log());
            replicas[index] = stage.replica(&format!("r{index}-{round}"));
        }
    }
    stage.assert_faithful(true).await;
}
