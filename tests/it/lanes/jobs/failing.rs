//! A lane whose first job fails: no other job of it is sent before, and all other lanes continue.

use std::time::Duration;

use rustix::process::Signal;

use super::{BOTH, Source, Stage, each_once, in_order, lane, number, refuse};
use crate::support::relays::parse;
use crate::support::{PATIENCE, Process, Replica, eventually, outbox_relay};

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn failing_job_holds_up_its_lane_alone_and_is_not_overtaken() {
    for source in BOTH {
        for status in [500, 503] {
            let stage = Stage::new(source).await;
            stage.receiver.answer(refuse("a", status, Duration::ZERO));
            let first = stage.one("a").await;
            stage.add(60, 20).await;
            let second = stage.one("a").await;
            stage.add(60, 20).await;
            let text = stage.text(8, ["", "", ""]);
            let replicas = ["r1", "r2", "r3"].map(|name| Replica::start(&parse(&text), name));
            eventually(PATIENCE * 2, async || stage.accepted().len() == 120).await;
            let tried = || {
                stage.receiver.requests().iter().filter(|request| lane(request) == "a").map(number).collect::<Vec<_>>()
            };
            let before = tried().len();
            eventually(PATIENCE * 2, async || tried().len() >= before + 2).await;
            assert!(tried().iter().all(|number| *number == first), "{source:?} {status}: {:?}", tried());
            // What comes meanwhile does not wait for it.
            stage.add(20, 20).await;
            eventually(PATIENCE * 2, async || stage.accepted().len() == 140).await;
            stage.receiver.answer(|_| (200, Duration::ZERO));
            stage.all_sent().await;
            for replica in replicas {
                replica.stop().await;
            }
            in_order(&stage.receiver);
            each_once(&stage, 142);
            assert_eq!(tried().last(), Some(&second));
        }
    }
}

/// Most of the jobs looked through are of a lane that waits.
// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn backlog_of_a_waiting_lane_keeps_no_other_waiting_within_window() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(refuse("a", 503, Duration::ZERO));
        stage.ask("$2::text", &[&3_000_i64, &"a"]).await;
        let beyond = stage.one("b").await;
        let replica = Replica::start(&parse(&stage.text(4, ["", "window = 3001", ""])), "r1");
        eventually(PATIENCE * 2, async || stage.accepted() == [beyond]).await;
        stage.one("c").await;
        stage.receiver.answer(refuse("none", 503, Duration::ZERO));
        eventually(PATIENCE * 3, async || stage.accepted().len() > 20).await;
        replica.stop().await;
        in_order(&stage.receiver);
    }
}

/// More lanes wait than a look goes through at first, and their next jobs are not the next ones in order.
// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn lanes_that_wait_beyond_a_look_are_not_overtaken() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        let waiting = "INSERT INTO outbox.claim (relay, key, due_at, state, token, attempts, claimed_by, not_before) \
                         SELECT 'h', ARRAY[id::text], due, 'waiting', 't', 1, 'r', now() + interval '1 hour' FROM jobs";
        let wait = match source {
            Source::Due => waiting,
            Source::Requests => "UPDATE outbox.request SET attempts = 1, not_before = now() + interval '1 hour'",
        };
        stage.ask("'k' || n + $2", &[&150_i64, &0_i64]).await;
        stage.owner.batch_execute(wait).await.unwrap();
        stage.ask("'k' || $2 - n", &[&150_i64, &151_i64]).await;
        let other = stage.one("z").await;
        let replica = Replica::start(&parse(&stage.text(4, ["", "", ""])), "r1");
        eventually(PATIENCE * 2, async || !stage.accepted().is_empty()).await;
        let second = stage.one("z").await;
        eventually(PATIENCE * 2, async || stage.accepted().contains(&second)).await;
        replica.stop().await;
        assert_eq!(stage.accepted(), [other, second], "{source:?}");
    }
}

/// One job at a time tries a receiver that seems to be out: not always one of the lanes that fail.
// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn lanes_of_jobs_that_always_fail_keep_no_other_from_a_receiver_that_works() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(|request| (if lane(request).starts_with("bad") { 503 } else { 200 }, Duration::ZERO));
        for bad in ["bad1", "bad2", "bad3", "bad4", "bad5", "bad6"] {
            stage.one(bad).await;
        }
        let replica = Replica::start(&parse(&stage.text(20, ["", "", ""])), "r1");
        let failing = "SELECT count(*) FROM outbox.cursor_status WHERE last_error IS NOT NULL";
        eventually(PATIENCE * 2, async || stage.owner.query_one(failing, &[]).await.unwrap().get::<_, i64>(0) == 1)
            .await;
        stage.add(100, 20).await;
        eventually(PATIENCE * 4, async || stage.accepted().len() == 100).await;
        replica.stop().await;
        in_order(&stage.receiver);
    }
}

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn rate_holds_over_all_lanes_of_jobs() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(|_| (200, Duration::from_millis(300)));
        stage.add(40, 40).await;
        let text = stage.text(20, ["", "", "rate_per_second = 20"]);
        let replicas = ["r1", "r2"].map(|name| Replica::start(&parse(&text), name));
        stage.all_sent().await;
        for replica in replicas {
            replica.stop().await;
        }
        each_once(&stage, 40);
        let requests = stage.receiver.requests();
        let took = requests[39].at.duration_since(requests[0].at).unwrap();
        // One at a time they would take 12 s.
        assert!((Duration::from_millis(39 * 50 - 60)..Duration::from_secs(9)).contains(&took), "{source:?}: {took:?}");
        assert!(requests.iter().any(|request| request.at_once > 1), "{source:?}: side by side");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_once_tries_each_lane_and_ends_behind_one_that_fails() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(refuse("a", 500, Duration::ZERO));
        stage.one("a").await;
        stage.add(30, 5).await;
        stage.one("a").await;
        let text = stage.text(4, ["", "", ""]);
        let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
        assert_eq!(
            (code, stage.accepted().len(), stage.receiver.requests().len()),
            (Some(1), 30, 31),
            "{source:?} {log}"
        );
        stage.receiver.answer(|_| (200, Duration::ZERO));
        let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
        assert_eq!((code, stage.left().await), (Some(0), 0), "{source:?} {log}");
        in_order(&stage.receiver);
    }
}

/// A refused job is given up in its place, and the lane goes on.
#[tokio::test(flavor = "multi_thread")]
async fn refused_job_halts_or_is_given_up_in_its_place() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(|request| (if number(request) == 8 { 422 } else { 200 }, Duration::from_millis(5)));
        stage.add(40, 4).await;
        let replica = Replica::start(&parse(&stage.text(4, ["on_poison = \"halt\"", "", ""])), "r1");
        let halted = "SELECT count(*) FROM outbox.cursor_status WHERE halted";
        eventually(PATIENCE * 2, async || stage.owner.query_one(halted, &[]).await.unwrap().get::<_, i64>(0) == 1)
            .await;
        replica.stop().await;
        assert!(!stage.accepted().contains(&12), "{source:?}: 12 is behind 8");
        let text = stage.text(4, ["on_poison = \"dead_letter\"", "", ""]);
        let replica = Replica::start(&parse(&text), "r2");
        eventually(PATIENCE * 4, async || stage.accepted().len() == 39).await;
        replica.stop().await;
        each_once(&stage, 39);
        let of_lane: Vec<i64> = stage.accepted().into_iter().filter(|number| number % 4 == 0).collect();
        assert!(of_lane.is_sorted(), "{source:?}: {of_lane:?}");
    }
}

/// Its claim is still there, and belongs to no replica: another row of the lane must not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn claim_of_a_row_that_is_gone_frees_its_lane_when_it_expires() {
    let stage = Stage::new(Source::Due).await;
    stage.receiver.hold();
    let first = stage.one("a").await;
    stage.one("a").await;
    let text = stage.text(4, ["", "deadline = \"1s\"", "timeout = \"500ms\""]);
    let mut replica = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || stage.receiver.requests().len() == 1).await;
    replica.signal(Signal::KILL);
    replica.wait().await;
    stage.owner.execute("DELETE FROM jobs WHERE id = $1", &[&first]).await.unwrap();
    stage.receiver.release();
    let replica = Replica::start(&parse(&text), "r2");
    stage.all_sent().await;
    replica.stop().await;
    assert_eq!(stage.receiver.requests().iter().map(number).collect::<Vec<_>>(), [first, first + 1]);
}

// Guarantee: pending.plans
#[tokio::test(flavor = "multi_thread")]
async fn looks_for_lanes_in_a_million_rows_stay_index_scans() {
    let stage = Stage::new(Source::Due).await;
    let rows = "INSERT INTO jobs (lane, due, sent) SELECT 'k' || n % 500, now() + (n - 1500) * interval '1 minute', n % 3 = 0 AND n > 1500 \
                FROM generate_series(1, 1000000) AS n; ANALYZE jobs";
    stage.owner.batch_execute(rows).await.unwrap();
    let scans = "SELECT COALESCE(seq_scan, 0) FROM pg_stat_user_tables WHERE relname = 'jobs'";
    let before: i64 = stage.owner.query_one(scans, &[]).await.unwrap().get(0);
    let begun = std::time::Instant::now();
    let (code, _, log) = outbox_relay(&stage.text(50, ["", "", ""]), &["run", "--once"]).await;
    println!("{} jobs in {:?}", stage.accepted().len(), begun.elapsed());
    assert_eq!(code, Some(0), "{log}");
    assert!((1_500..1_510).contains(&stage.accepted().len()), "{}", stage.accepted().len());
    in_order(&stage.receiver);
    // A session's statistics arrive when it ends.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'relay' AND datname = current_database()";
    eventually(PATIENCE, async || stage.owner.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    let after: i64 = stage.owner.query_one(scans, &[]).await.unwrap().get(0);
    assert_eq!(after, before, "no look and no claim reads the whole table");
}
