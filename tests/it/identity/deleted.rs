//! A cursor's row that is deleted by hand.

use super::{advanced, halted, printed, prints, resume, run};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

// Guarantee: horizon.deleted-cursor
#[tokio::test(flavor = "multi_thread")]
async fn rows_beside_the_deletion_of_a_cursor_are_delivered_when_the_halt_is_over() {
    for start in ["now", "beginning"] {
        let database = database().await;
        let mut owner = bookings(&database, CLOCK).await;
        let relay = format!(
            "[[relay]]\nname = \"r\"\nstart = \"{start}\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n"
        );
        let text = toml(&database, "relay", None, &relay);
        let process = Process::spawn(&text, &["run"]);
        eventually(PATIENCE, async || owner.query_opt("SELECT FROM outbox.cursor", &[]).await.unwrap().is_some()).await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        prints(&process, &["1"]).await;
        advanced(&owner, "1").await;
        // Carried out once, and not again of the row that is made again.
        let (code, _, log) = outbox_relay(&text, &["cursor", "seek", "r", "--beginning", "--yes"]).await;
        assert_eq!(code, Some(0), "{log}");
        prints(&process, &["1", "1"]).await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        prints(&process, &["1", "1", "2"]).await;
        advanced(&owner, "2").await;
        run(&owner, "BEGIN; DELETE FROM outbox.cursor; INSERT INTO bookings SELECT FROM generate_series(1, 3); COMMIT")
            .await;
        let (message, hint) = halted(&owner, "cursor_deleted").await;
        assert!(hint.contains("outbox-relay cursor resume r"), "{hint}");
        println!("{message}\n{hint}");
        assert_eq!(printed(&process).len(), 3, "nothing is sent before an operator has decided");
        resume(&mut owner).await;
        eventually(PATIENCE, async || printed(&process).last().is_some_and(|id| id == "5")).await;
        let sent = printed(&process);
        // Of what was sent since the last look at the cursor, the last row may come again.
        let again = &sent[3..];
        assert!(again == ["3", "4", "5"] || again == ["2", "3", "4", "5"], "{sent:?}");
    }
}

// Guarantee: horizon.deleted-cursor
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_cursor_stays_halted_for_the_next_process() {
    let database = database().await;
    let mut owner = bookings(&database, CLOCK).await;
    let relay = "[[relay]]\nname = \"r\"\nstart = \"now\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n";
    let text = toml(&database, "relay", None, relay);
    let mut process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || owner.query_opt("SELECT FROM outbox.cursor", &[]).await.unwrap().is_some()).await;
    run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
    prints(&process, &["1"]).await;
    advanced(&owner, "1").await;
    run(&owner, "BEGIN; DELETE FROM outbox.cursor; INSERT INTO bookings DEFAULT VALUES; COMMIT").await;
    halted(&owner, "cursor_deleted").await;
    process.signal(rustix::process::Signal::KILL);
    process.wait().await;
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || process.log().contains("relay ready")).await;
    halted(&owner, "cursor_deleted").await;
    assert!(printed(&process).is_empty());
    resume(&mut owner).await;
    eventually(PATIENCE, async || printed(&process).last().is_some_and(|id| id == "2")).await;
}
