//! Positions are compared by types and collation: where these change, rows that were not delivered can be before a position.

use rustix::process::Signal;

use super::{advanced, halted, prints, resume, run, start};
use crate::support::{PATIENCE, database, eventually};

struct Case {
    /// The columns `id` and `created_at`.
    columns: &'static str,
    /// The row that is delivered before the change, and its id.
    first: (&'static str, &'static str),
    /// One that is committed later, after it in the order that is.
    second: &'static str,
    change: &'static str,
    /// What is delivered when the operator accepts it.
    then: &'static [&'static str],
}

const CASES: [Case; 3] = [
    Case {
        columns: "id bigint, created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        first: ("9, '2026-11-21 08:00:00.25+00'", "9"),
        second: "10, '2026-11-21 08:00:00.25+00'",
        change: "ALTER TABLE bookings ALTER id TYPE text",
        then: &["10", "9"],
    },
    Case {
        columns: "id text COLLATE \"en-x-icu\", created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        first: ("'a', '2026-11-21 08:00:00.25+00'", "a"),
        second: "'B', '2026-11-21 08:00:00.25+00'",
        change: "ALTER TABLE bookings ALTER id TYPE text COLLATE \"C\"",
        then: &["B", "a"],
    },
    Case {
        columns: "id bigint, created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        first: ("1, '2026-11-21 08:00:00.25+00'", "1"),
        second: "2, '2026-11-21 08:00:00.3+00'",
        change: "ALTER TABLE bookings ALTER created_at TYPE timestamptz(0)",
        then: &["1", "2"],
    },
];

// Guarantee: horizon.order-changed
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_new_order_puts_before_the_position_are_delivered_when_the_halt_is_over() {
    for (case, is_running) in CASES.iter().flat_map(|case| [(case, false), (case, true)]) {
        println!("{}, running: {is_running}", case.change);
        let database = database().await;
        let mut owner = database.connect("postgres").await;
        let table = format!(
            "CREATE TABLE bookings ({}, PRIMARY KEY (id)); CREATE INDEX ON bookings (created_at, id); \
             GRANT SELECT ON bookings TO relay; INSERT INTO bookings VALUES ({})",
            case.columns, case.first.0
        );
        run(&owner, &table).await;
        let mut process = start(&database, "relay");
        let mut printed = vec![case.first.1];
        prints(&process, &printed).await;
        advanced(&owner, case.first.1).await;
        let change = format!("BEGIN; INSERT INTO bookings VALUES ({}); {}; COMMIT", case.second, case.change);
        if is_running {
            run(&owner, &change).await;
        } else {
            process.signal(Signal::TERM);
            assert_eq!(process.wait().await, Some(0), "{}", process.log());
            run(&owner, &change).await;
            process = start(&database, "relay");
            printed.clear();
        }
        let (message, hint) = halted(&owner, "order_changed").await;
        assert!(message.contains("the position is 2026-11-21T08:00:00.000000Z"), "{message}");
        assert!(hint.contains("outbox-relay cursor resume r"), "{hint}");
        println!("{message}\n{hint}");
        resume(&mut owner).await;
        printed.extend(case.then);
        prints(&process, &printed).await;
    }
}

// Guarantee: horizon.order-changed
#[tokio::test(flavor = "multi_thread")]
async fn a_wider_type_of_the_same_order_halts_nothing() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let table = "CREATE TABLE bookings (id integer PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
                 CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; INSERT INTO bookings VALUES (1)";
    run(&owner, table).await;
    let process = start(&database, "relay");
    prints(&process, &[1]).await;
    advanced(&owner, "1").await;
    run(&owner, "ALTER TABLE bookings ALTER id TYPE bigint; INSERT INTO bookings VALUES (5000000000)").await;
    prints(&process, &[1_i64, 5_000_000_000]).await;
    let halted = "SELECT count(*) FROM outbox.cursor_status WHERE halted";
    eventually(PATIENCE, async || owner.query_one(halted, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
}
