//! A partition that is detached while it holds rows that were not delivered.

use rustix::process::Signal;
use tokio_postgres::Client;

use super::{BOOKINGS, adopt, advanced, printed, prints, run, start, stdout_relay};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// Row 1 becomes visible only in the relation that is no part of the table any more.
const AWAY: &str = "BEGIN; INSERT INTO bookings (id) VALUES (1); ALTER TABLE bookings DETACH PARTITION a; COMMIT";
const NO_CHILD: &str = "BEGIN; INSERT INTO a (id) VALUES (1); ALTER TABLE a NO INHERIT bookings; COMMIT";
const NEXT: &str = "INSERT INTO bookings (id) VALUES (101)";
const ATTACH: &str = "ALTER TABLE bookings ATTACH PARTITION a FOR VALUES FROM (MINVALUE) TO (100)";

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
    let mut told = None;
    eventually(PATIENCE, async || {
        told = owner.query_opt(sql, &[]).await.unwrap().map(|row| (row.get(0), row.get(1)));
        told.is_some()
    })
    .await;
    told.unwrap()
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn relay_waits_for_a_detached_partition_with_rows_and_delivers_them_in_order_when_it_returns() {
    for (inherit, away, returns) in [(false, AWAY, ATTACH), (true, NO_CHILD, "ALTER TABLE a INHERIT bookings")] {
        let database = database().await;
        let (owner, process) = delivered(&database, inherit).await;
        run(&owner, away).await;
        let (message, hint) = waits(&owner).await;
        assert!(message.starts_with("public.a is no part of public.bookings any more"), "{message}");
        assert!(message.ends_with("it holds some"), "{message}");
        let fix = if inherit { "ALTER TABLE public.a INHERIT" } else { "Attach public.a again" };
        assert!(hint.contains(fix) && hint.contains("`outbox-relay cursor adopt r`"), "{hint}");
        // No row of the table is left; all the same, no process may end with success before the partition is back.
        let text = toml(&database, "relay", None, &stdout_relay(BOOKINGS));
        let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "8s"]).await;
        assert!(code == Some(1) && log.contains("partition public.a is detached, and may hold rows"), "{log}");
        run(&owner, NEXT).await;
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
        run(&owner, NEXT).await;
        waits(&owner).await;
        if drop {
            run(&owner, "DROP TABLE a").await;
        } else {
            adopt(&database, "relay", BOOKINGS).await;
        }
        prints(&process, &[100, 101]).await;
    }
}

/// Begins to detach `a` while another session has read or written the table: the detachment stays pending.
async fn detaches(owner: &Client) {
    run(owner, "SET lock_timeout = '200ms'").await;
    owner
        .batch_execute("ALTER TABLE bookings DETACH PARTITION a CONCURRENTLY")
        .await
        .expect_err("a session is in the way");
    let pending = "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhdetachpending)";
    assert!(owner.query_one(pending, &[]).await.unwrap().get::<_, bool>(0), "it was not begun");
    run(owner, "RESET lock_timeout").await;
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn partition_whose_detachment_is_pending_is_waited_for_also_while_its_writers_are_open() {
    for is_open in [false, true] {
        let database = database().await;
        let (owner, process) = delivered(&database, false).await;
        let earlier = database.connect("postgres").await;
        if is_open {
            run(&earlier, "BEGIN; INSERT INTO bookings (id) VALUES (1)").await;
            detaches(&owner).await;
        } else {
            run(&earlier, "BEGIN; SELECT FROM bookings").await;
            // Before the relay reads row 1, the detachment is pending.
            process.signal(Signal::STOP);
            run(&owner, "INSERT INTO bookings (id) VALUES (1)").await;
            detaches(&owner).await;
            process.signal(Signal::CONT);
        }
        let (message, hint) = waits(&owner).await;
        assert!(message.ends_with("transactions that have begun before may still write to it"), "{message}");
        assert!(hint.contains("DETACH PARTITION public.a FINALIZE"), "{hint}");
        run(&earlier, "COMMIT").await;
        run(&owner, NEXT).await;
        run(&owner, "ALTER TABLE bookings DETACH PARTITION a FINALIZE").await;
        let said = || async { waits(&owner).await.0.ends_with("it holds some") };
        eventually(PATIENCE, said).await;
        assert_eq!(printed(&process), ["100"]);
        run(&owner, ATTACH).await;
        prints(&process, &[100, 1, 101]).await;
    }
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn detached_partition_that_is_rewritten_renamed_or_of_another_shape_is_not_taken_for_empty() {
    for (change, why) in [
        // While it is open, the relay waits for it; afterwards an older snapshot shows no row.
        ("ALTER TABLE a ADD COLUMN note double precision DEFAULT random()", "it holds some"),
        ("ALTER TABLE a RENAME created_at TO stamped_at", "cannot be told (ERROR: column t.created_at does not exist"),
        // The relay waits for the lock by the old name, and finds no table of that name, or another one.
        ("ALTER TABLE a RENAME TO x", "it holds some"),
        ("ALTER TABLE a RENAME TO x; CREATE TABLE a (LIKE x); GRANT SELECT ON a TO relay", "it holds some"),
    ] {
        let database = database().await;
        let (owner, process) = delivered(&database, false).await;
        process.signal(Signal::STOP);
        run(&owner, AWAY).await;
        let changing = database.connect("postgres").await;
        run(&changing, &format!("BEGIN; {change}")).await;
        run(&owner, NEXT).await;
        process.signal(Signal::CONT);
        let locked = "SELECT EXISTS (SELECT FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation \
                      WHERE NOT l.granted AND c.relname = 'a')";
        eventually(PATIENCE, || async { owner.query_one(locked, &[]).await.unwrap().get(0) }).await;
        run(&changing, "COMMIT").await;
        let said = || async { waits(&owner).await.0.contains(why) };
        eventually(PATIENCE, said).await;
        assert_eq!(printed(&process), ["100"], "{}", process.log());
        // What the hint says goes, whatever the partition looks like now.
        adopt(&database, "relay", BOOKINGS).await;
        prints(&process, &[100, 101]).await;
    }
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn letter_that_is_sent_meanwhile_does_not_make_the_relay_forget_the_partition() {
    let database = database().await;
    let owner = crate::losses::members(&database, false).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (100)").await;
    let relay = stdout_relay(BOOKINGS).replace("name = \"r\"", "name = \"r\"\nguarantee = \"at_most_once\"");
    let process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    prints(&process, &[100]).await;
    advanced(&owner, "100").await;
    run(&owner, AWAY).await;
    waits(&owner).await;
    let letter = "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error, state, \
                  dead_lettered_by, requested_at) SELECT 'r', 'public.bookings', created_at, '100', 'stdout', 'stdout', '{}', '{}', '{}', \
                  'redriving', 'test', now() FROM bookings WHERE id = 100";
    run(&owner, letter).await;
    prints(&process, &[100, 100]).await;
    run(&owner, NEXT).await;
    let settled = "SELECT count(*) = 0 FROM outbox.dead_letter WHERE state = 'redriving'";
    eventually(PATIENCE, || async { owner.query_one(settled, &[]).await.unwrap().get(0) }).await;
    waits(&owner).await;
    assert_eq!(printed(&process), ["100", "100"]);
    run(&owner, ATTACH).await;
    prints(&process, &[100, 100, 1, 101]).await;
}

// Guarantee: horizon.away
#[tokio::test(flavor = "multi_thread")]
async fn detached_partition_without_such_rows_stops_no_relay_and_one_that_cannot_be_read_is_told() {
    for (before, row, told) in [
        ("", "INSERT INTO bookings (id) VALUES (1)", false),
        ("REVOKE SELECT ON a FROM relay", "", false),
        ("REVOKE SELECT ON a FROM relay", "INSERT INTO bookings (id) VALUES (1)", true),
    ] {
        let database = database().await;
        let (owner, process) = delivered(&database, false).await;
        run(&owner, before).await;
        run(&owner, row).await;
        let mut expected = vec![100];
        if !row.is_empty() {
            expected.push(1);
            prints(&process, &expected).await;
            advanced(&owner, "1").await;
        }
        run(&owner, "ALTER TABLE bookings DETACH PARTITION a").await;
        run(&owner, NEXT).await;
        expected.push(101);
        prints(&process, &expected).await;
        let log = process.log();
        let line = "a partition was detached, and whether rows of it were not delivered is unknown";
        assert_eq!(log.contains(line) && log.contains("GRANT SELECT ON public.a TO relay;"), told, "{log}");
    }
}
