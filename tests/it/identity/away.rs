//! A partition that is detached while it holds rows that were not delivered.

use rustix::process::Signal;
use tokio_postgres::Client;

use super::{BOOKINGS, adopt, advanced, printed, prints, run, start, stdout_relay};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// Row 1 becomes visible only in the relation that is no part of the table any more, and row 101 follows.
const AWAY: &str = "BEGIN; INSERT INTO bookings (id) VALUES (1); ALTER TABLE bookings DETACH PARTITION a; COMMIT; \
                    INSERT INTO bookings (id) VALUES (101)";
const NO_CHILD: &str = "BEGIN; INSERT INTO a (id) VALUES (1); ALTER TABLE a NO INHERIT bookings; COMMIT; \
                        INSERT INTO bookings (id) VALUES (101)";

/// A relay that has printed row 100 of a table with the member `a`, in which no row is.
async fn delivered(database: &Database, inherit: bool) -> (Client, Process) {
    let owner = crate::losses::members(database, inherit).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (100)").await;
    let process = start(database, "relay");
    prints(&process, &[100]).await;
    advanced(&owner, "100").await;
    (owner, process)
}

/// Waits until the cursor waits for a partition; gives message and hint.
async fn waits(owner: &Client) -> (String, String) {
    let sql = "SELECT last_error ->> 'message', last_error ->> 'hint' FROM outbox.cursor_status \
               WHERE cursor = 'r' AND NOT halted AND last_error ->> 'code' = 'partition_detached'";
    eventually(PATIENCE, || async { owner.query_opt(sql, &[]).await.unwrap().is_some() }).await;
    let row = owner.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn relay_waits_for_a_detached_partition_with_rows_and_delivers_them_in_order_when_it_returns() {
    for (inherit, away, returns) in [
        (false, AWAY, "ALTER TABLE bookings ATTACH PARTITION a FOR VALUES FROM (MINVALUE) TO (100)"),
        (true, NO_CHILD, "ALTER TABLE a INHERIT bookings"),
    ] {
        let database = database().await;
        let (owner, process) = delivered(&database, inherit).await;
        run(&owner, away).await;
        let (message, hint) = waits(&owner).await;
        assert!(message.starts_with("public.a was a partition of public.bookings, is none any more"), "{message}");
        assert!(hint.contains("Attach public.a again") && hint.contains("`outbox-relay cursor adopt r`"), "{hint}");
        // Another process may not end before it is back, either.
        let text = toml(&database, "relay", None, &stdout_relay(BOOKINGS));
        let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "3s"]).await;
        assert_ne!(code, Some(0), "{log}");
        assert_eq!(printed(&process), ["100"]);
        run(&owner, returns).await;
        prints(&process, &[100, 1, 101]).await;
    }
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_detached_partition_are_given_up_by_its_drop_or_by_adopt() {
    for drop in [true, false] {
        let database = database().await;
        let (owner, process) = delivered(&database, false).await;
        run(&owner, AWAY).await;
        waits(&owner).await;
        if drop {
            run(&owner, "DROP TABLE a").await;
        } else {
            adopt(&database, "relay", BOOKINGS).await;
        }
        prints(&process, &[100, 101]).await;
    }
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn partition_whose_detachment_is_pending_is_waited_for() {
    let database = database().await;
    let (owner, process) = delivered(&database, false).await;
    // Before the relay reads row 1, the detachment is pending: it waits for this session.
    let earlier = database.connect("postgres").await;
    run(&earlier, "BEGIN; SELECT FROM bookings").await;
    process.signal(Signal::STOP);
    run(&owner, "INSERT INTO bookings (id) VALUES (1)").await;
    run(&owner, "SET lock_timeout = '200ms'").await;
    owner.batch_execute("ALTER TABLE bookings DETACH PARTITION a CONCURRENTLY").await.expect_err("a reader is open");
    process.signal(Signal::CONT);
    run(&owner, "INSERT INTO bookings (id) VALUES (101)").await;
    waits(&owner).await;
    run(&earlier, "COMMIT").await;
    run(&owner, "ALTER TABLE bookings DETACH PARTITION a FINALIZE").await;
    run(&owner, "ALTER TABLE bookings ATTACH PARTITION a FOR VALUES FROM (MINVALUE) TO (100)").await;
    prints(&process, &[100, 1, 101]).await;
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn detached_partition_without_such_rows_stops_no_relay_and_one_that_cannot_be_read_is_told() {
    for (before, away, told) in [
        ("", "INSERT INTO bookings (id) VALUES (1)", false),
        ("REVOKE SELECT ON a FROM relay", AWAY, true),
        ("REVOKE SELECT ON a FROM relay", "ALTER TABLE bookings DETACH PARTITION a", false),
    ] {
        let database = database().await;
        let (owner, process) = delivered(&database, false).await;
        run(&owner, before).await;
        let mut expected = vec![100];
        run(&owner, away).await;
        if away != AWAY {
            if away.starts_with("INSERT") {
                expected.push(1);
                prints(&process, &expected).await;
                advanced(&owner, "1").await;
                run(&owner, "ALTER TABLE bookings DETACH PARTITION a").await;
            }
            run(&owner, "INSERT INTO bookings (id) VALUES (101)").await;
        }
        expected.push(101);
        prints(&process, &expected).await;
        let log = process.log();
        let line = "a partition was detached that this role cannot read";
        assert_eq!(log.contains(line) && log.contains("GRANT SELECT ON public.a TO relay;"), told, "{log}");
    }
}
