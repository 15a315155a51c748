//! The clock and the configuration that a cursor was advanced under.

use std::time::Duration;

use super::{BOOKINGS, adopt, advanced, clock, halted, printed, prints, run, start, stdout_relay};
use crate::support::outside::get;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";

#[tokio::test]
async fn a_clock_behind_the_last_advance_publishes_nothing_until_it_has_caught_up() {
    for role in ["relay", "relay_stats"] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, INSERT).await;
        let process = start(&database, role);
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        // The same as a clock that has stepped back by three seconds since the last advance.
        run(&owner, "UPDATE outbox.cursor SET observed_at = clock_timestamp() + interval '3 seconds'").await;
        let until: outbox_relay::position::Timestamp =
            owner.query_one("SELECT observed_at FROM outbox.cursor", &[]).await.unwrap().get(0);
        run(&owner, INSERT).await;
        eventually(PATIENCE, || async { process.log().contains("the database's clock has stepped back") }).await;
        assert_eq!(metric(&process, "outbox_relay_cursor_clock_regression").await, Some(1.0));
        let window = Duration::from_millis(5);
        loop {
            let before = printed(&process).len();
            let now = clock(&owner).await;
            if before > 1 {
                assert!(now.plus(window) >= until, "published at {now}, before {until}");
                break;
            }
            assert!(now < until.plus(PATIENCE), "it does not go on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        prints(&process, &[1, 2]).await;
        eventually(PATIENCE, || async { metric(&process, "outbox_relay_cursor_clock_regression").await == Some(0.0) })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_has_stepped_back_is_logged_without_a_turn_and_told_until_a_seek() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, INSERT).await;
    let process = start(&database, "relay");
    prints(&process, &[1]).await;
    advanced(&owner, "1").await;
    // As if it had been advanced by a clock three seconds ahead: what is stamped from now on lies below the position.
    run(
        &owner,
        "UPDATE outbox.cursor SET observed_at = clock_timestamp() + interval '3 seconds', \
         position_created_at = clock_timestamp() + interval '3 seconds'",
    )
    .await;
    run(&owner, INSERT).await;
    let begun = "the database's clock has stepped back: held until it passes the last advance; rows stamped in between may \
                 lie below the position";
    let began = crate::support::outside::line(&process, begun).await;
    assert!(began["clock"].is_string() && began["observed_at"].is_string(), "{began}");
    let ended =
        "the database's clock has passed the last advance again: rows stamped in between may not have been delivered";
    let ended = crate::support::outside::line(&process, ended).await;
    let from = ended["from"].as_str().unwrap().to_owned();
    assert_eq!((&ended["from"], &ended["to"]), (&began["clock"], &began["observed_at"]), "{ended}");
    let text = crate::support::toml(&database, "relay", None, &stdout_relay(BOOKINGS));
    let (_, out, log) = crate::support::outbox_relay(&text, &["cursor", "why", "r"]).await;
    assert!(out.contains(&format!("rows stamped between {from} and")), "{out}{log}");
    let (_, out, _) = crate::support::outbox_relay(&text, &["status"]).await;
    assert!(out.contains(&format!("the clock has stepped back: rows stamped between {from}")), "{out}");
    let (code, _, log) = crate::support::outbox_relay(&text, &["cursor", "seek", "r", "--at", &from, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE, || async { printed(&process).contains(&"2".to_owned()) }).await;
    let (_, out, _) = crate::support::outbox_relay(&text, &["cursor", "why", "r"]).await;
    assert!(!out.contains("may not have been delivered"), "{out}");
}

/// The value of a metric of the cursor `r`, asked of the running process.
async fn metric(process: &Process, name: &str) -> Option<f64> {
    let log = process.log();
    let starts: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let url = format!("http://{}/metrics", starts["admin"].as_str().unwrap());
    let (_, text) = get(&url).await;
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")) && line.contains("\"r\""))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[tokio::test]
async fn a_step_back_within_the_window_does_no_harm() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, INSERT).await;
    let relay = format!("{}latency_window = \"5s\"\n", "[[relay]]\nname = \"r\"\n")
        + &stdout_relay(BOOKINGS).replace("[[relay]]\nname = \"r\"\n", "");
    run(&owner, "UPDATE bookings SET created_at = created_at - interval '1 minute'").await;
    let process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    prints(&process, &[1]).await;
    advanced(&owner, "1").await;
    run(&owner, "UPDATE outbox.cursor SET observed_at = clock_timestamp() + interval '4 seconds'").await;
    run(&owner, "INSERT INTO bookings (created_at) VALUES (clock_timestamp() - interval '30 seconds')").await;
    prints(&process, &[1, 2]).await;
    assert!(!process.log().contains("stepped back"));
}

// Guarantee: commands.adopt
#[tokio::test]
async fn another_configuration_under_the_same_name_halts_until_it_is_accepted() {
    for role in ["relay", "relay_stats"] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, INSERT).await;
        let process = start(&database, role);
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        drop(process);
        run(
            &owner,
            "CREATE TABLE tours (LIKE bookings INCLUDING ALL); GRANT SELECT ON tours TO relay, relay_stats; \
             INSERT INTO tours DEFAULT VALUES",
        )
        .await;
        let other = stdout_relay("table = \"public.tours\"");
        let other = Process::spawn(&toml(&database, role, None, &other), &["run"]);
        let (message, hint) = halted(&owner, "identity_changed").await;
        assert!(message.contains("public.bookings") && message.contains("public.tours"), "{message}");
        assert!(hint.contains("new name") && hint.contains("`outbox-relay cursor adopt r`"), "{hint}");
        assert!(printed(&other).is_empty());
        // The first configuration goes on meanwhile: its halt is another configuration's.
        let again = start(&database, role);
        run(&owner, INSERT).await;
        prints(&again, &[2]).await;
        advanced(&owner, "2").await;
        drop(again);
        run(&owner, "INSERT INTO tours DEFAULT VALUES").await;
        adopt(&database, role, "table = \"public.tours\"").await;
        prints(&other, &[2]).await;
    }
}

/// Records a step of the clock as a replica does.
const STEP: &str = "INSERT INTO outbox.operation (operator, verb, cursor, detail) SELECT 'r', 'clock stepped back', 'old', \
                    jsonb_build_object('from', $1::text::timestamptz, 'to', $2::text::timestamptz)";

// Guarantee: horizon.clock-step-bound
#[tokio::test(flavor = "multi_thread")]
async fn clock_step_is_told_beyond_rename_and_reshard_until_a_seek_to_before_its_end() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, INSERT).await;
    let configured =
        |name: &str, more: &str| toml(&database, "postgres", None, &crate::support::outside::stdout_relay(name, more));
    let (old, new) = (configured("old", ""), configured("new", ""));
    let sharded = configured("new", "shards = 2\nshard_key = \"payload\"");
    let ends = async |text: &str, args: &[&str]| {
        let (code, out, log) = crate::support::outbox_relay(text, args).await;
        // What it finds may be its exit code.
        assert!(code == Some(0) || args[1] == "why", "{args:?} {out}{log}");
        out + &log
    };
    ends(&old, &["run", "--once"]).await;
    let shard =
        "(COALESCE(pg_catalog.hashtextextended(\"payload\"::text COLLATE pg_catalog.\"C\", 0), 0) & 2147483647) % 2";
    run(&owner, &format!("CREATE INDEX bookings_shards ON bookings (({shard}), created_at, id)")).await;
    for (from, to) in [(None, "2026-11-21T08:00:07Z"), (Some("2026-11-21T08:00:00Z"), "2026-11-21T08:00:07Z")] {
        owner.execute(STEP, &[&from, &to]).await.unwrap();
    }
    let between = "between 2026-11-21T08:00:00.000000Z and 2026-11-21T08:00:07.000000Z";
    for (text, name) in [(&old, "old"), (&new, "new"), (&sharded, "new#1")] {
        match name {
            "new" => drop(ends(&old, &["cursor", "rename", "old", "new", "--yes"]).await),
            "new#1" => {
                ends(&new, &["run", "--once"]).await;
                ends(&sharded, &["cursor", "reshard", "new"]).await;
            }
            _ => {}
        }
        let told = ends(text, &["cursor", "why", name]).await;
        assert!(told.contains(between), "{told}");
        ends(text, &["cursor", "seek", name, "--at", "2026-11-21T08:00:08Z", "--yes"]).await;
        let told = ends(text, &["cursor", "why", name]).await;
        assert!(told.contains(between), "{name}: {told}");
    }
    ends(&sharded, &["cursor", "seek", "new#1", "--at", "2026-11-21T08:00:00Z", "--yes"]).await;
    let told = ends(&sharded, &["cursor", "why", "new#1"]).await;
    assert!(!told.contains("stepped back"), "{told}");
    let told = ends(&sharded, &["cursor", "why", "new#0"]).await;
    assert!(told.contains(between), "{told}");
}
