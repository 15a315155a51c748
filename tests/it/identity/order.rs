//! Positions are compared by types and collation: where these change, rows that were not delivered can be before a position.

use std::time::Duration;

use rustix::process::Signal;

use super::{advanced, halted, printed, prints, resume, run, start};
use crate::support::{PATIENCE, Process, database, eventually};

struct Case {
    /// The columns `id` and `created_at`.
    columns: &'static str,
    /// The row that is delivered before the change, and its id.
    first: (&'static str, &'static str),
    /// Rows that are committed with the change, after the first in the order of before; the last one in every order.
    second: &'static str,
    change: &'static str,
    /// What is delivered when the operator accepts it.
    then: &'static [&'static str],
}

const CASES: [Case; 3] = [
    Case {
        columns: "id bigint, created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        first: ("9, '2026-11-21 08:00:00.25+00'", "9"),
        second: "(10, '2026-11-21 08:00:00.25+00'), (11, '2026-11-21 08:00:05+00')",
        change: "ALTER TABLE bookings ALTER id TYPE text",
        then: &["10", "9", "11"],
    },
    Case {
        columns: "id text COLLATE \"en-x-icu\", created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        first: ("'a', '2026-11-21 08:00:00.25+00'", "a"),
        second: "('B', '2026-11-21 08:00:00.25+00'), ('c', '2026-11-21 08:00:05+00')",
        change: "ALTER TABLE bookings ALTER id TYPE text COLLATE \"C\"",
        then: &["B", "a", "c"],
    },
    Case {
        columns: "id bigint, created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        first: ("1, '2026-11-21 08:00:00.25+00'", "1"),
        second: "(2, '2026-11-21 08:00:00.3+00'), (3, '2026-11-21 08:00:05+00')",
        change: "ALTER TABLE bookings ALTER created_at TYPE timestamptz(0)",
        then: &["1", "2", "3"],
    },
];

// Guarantee: horizon.order-changed
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_new_order_puts_before_the_position_are_delivered_when_the_halt_is_over() {
    for (case, is_running) in CASES.iter().flat_map(|case| [(case, false), (case, true)]) {
        println!("{}, running: {is_running}", case.change);
        let database = database().await;
        let mut owner = database.connect("postgres").await;
        let icu = "SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu')";
        let has_icu: bool = owner.query_one(icu, &[]).await.unwrap().get(0);
        // Without ICU a server has one order only, under several names: the change is noticed, and moves no row.
        let (columns, second) = if has_icu {
            (case.columns.to_owned(), case.second.to_owned())
        } else {
            (case.columns.replace("en-x-icu", "POSIX"), case.second.replace("'B'", "'b'"))
        };
        let then: Vec<&str> = if has_icu || case.then[0] != "B" { case.then.to_vec() } else { vec!["a", "b", "c"] };
        let table = format!(
            "CREATE TABLE bookings ({}, PRIMARY KEY (id)); CREATE INDEX ON bookings (created_at, id); \
             GRANT SELECT ON bookings TO relay; INSERT INTO bookings VALUES ({})",
            columns, case.first.0
        );
        run(&owner, &table).await;
        let mut process = start(&database, "relay");
        let mut printed = vec![case.first.1];
        prints(&process, &printed).await;
        advanced(&owner, case.first.1).await;
        let change = format!("BEGIN; INSERT INTO bookings VALUES {second}; {}; COMMIT", case.change);
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
        printed.extend(&then);
        prints(&process, &printed).await;
    }
}

// Guarantee: failures.halt-side-by-side
#[tokio::test(flavor = "multi_thread")]
async fn no_replica_goes_on_in_a_new_order_before_it_is_accepted_whatever_its_settings() {
    let database = database().await;
    let mut owner = database.connect("postgres").await;
    let Case { columns, first, second, change, then } = &CASES[0];
    let table = format!(
        "CREATE TABLE bookings ({columns}, PRIMARY KEY (id)); CREATE INDEX ON bookings (created_at, id); \
         GRANT SELECT ON bookings TO relay; INSERT INTO bookings VALUES ({})",
        first.0
    );
    run(&owner, &table).await;
    // Half of a rolling update of a setting that changes no message.
    let other = format!("{}[relay.turn]\nrows = 50\n", super::stdout_relay(super::BOOKINGS));
    let other = crate::support::toml(&database, "relay", None, &other);
    let replicas = [start(&database, "relay"), Process::spawn(&other, &["run"])];
    let ready = |replica: &Process| replica.log().contains("\"relay ready\"");
    eventually(PATIENCE * 2, async || replicas.iter().all(ready)).await;
    let delivered = || replicas.iter().map(|replica| printed(replica).len()).sum::<usize>();
    advanced(&owner, first.1).await;
    assert_eq!(delivered(), 1);
    run(&owner, &format!("BEGIN; INSERT INTO bookings VALUES {second}; {change}; COMMIT")).await;
    halted(&owner, "order_changed").await;
    // Long enough for the other one to take over.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(delivered(), 1, "nothing is sent before an operator has accepted the order");
    // Nor does a start with yet another setting end that halt.
    let third = Process::spawn(&other.replace("rows = 50", "rows = 60"), &["run"]);
    eventually(PATIENCE * 2, async || ready(&third)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((delivered(), printed(&third).len()), (1, 0));
    halted(&owner, "order_changed").await;
    resume(&mut owner).await;
    eventually(PATIENCE * 2, async || delivered() + printed(&third).len() == 1 + then.len()).await;
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

// Guarantee: horizon.order-changed
#[tokio::test(flavor = "multi_thread")]
async fn instants_that_become_others_move_no_position_and_the_halt_says_what_to_compare() {
    let database = database().await;
    let mut owner = database.connect("postgres").await;
    let table = "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamp NOT NULL DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')); \
                 CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; \
                 INSERT INTO bookings VALUES (1, '2026-11-21 08:00:00')";
    run(&owner, table).await;
    let toml = |zone: &str| {
        let stream = format!("table = \"public.bookings\"\n{zone}");
        crate::support::toml(&database, "relay", None, &super::stdout_relay(&stream))
    };
    let mut process = Process::spawn(&toml("time_zone = \"UTC\""), &["run"]);
    prints(&process, &[1]).await;
    advanced(&owner, "1").await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    // As if they had been local times of Berlin.
    run(
        &owner,
        "SET TimeZone = 'Europe/Berlin'; INSERT INTO bookings VALUES (2, '2026-11-21 08:00:01'); \
         ALTER TABLE bookings ALTER created_at DROP DEFAULT; ALTER TABLE bookings ALTER created_at TYPE timestamptz; \
         ALTER TABLE bookings ALTER created_at SET DEFAULT clock_timestamp()",
    )
    .await;
    let process = Process::spawn(&toml(""), &["run"]);
    let (message, hint) = halted(&owner, "order_changed").await;
    println!("{message}\n{hint}");
    assert!(
        !message.contains("so the position is") && message.contains("rows that were delivered can be after it"),
        "{message}"
    );
    assert!(hint.contains("cursor seek r --at INSTANT"), "{hint}");
    let (code, _, log) =
        crate::support::outbox_relay(&toml(""), &["cursor", "seek", "r", "--at", "2026-11-21T07:00:00Z", "--yes"])
            .await;
    assert_eq!(code, Some(0), "{log}");
    resume(&mut owner).await;
    // The first was sent before, and is after the position that the operator chose.
    prints(&process, &[1, 2]).await;
}

/// A table with a second instant, which has this default, and its row 1.
fn of_two_instants(default: &str) -> String {
    format!(
        "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), \
         updated_at timestamptz NOT NULL DEFAULT {default}); CREATE INDEX ON bookings (created_at, id); \
         CREATE INDEX ON bookings (updated_at, id); GRANT SELECT ON bookings TO relay; \
         INSERT INTO bookings VALUES (1, '2026-11-21 08:00:10+00', '2026-11-21 08:00:20+00')"
    )
}

// Guarantee: horizon.order-changed
#[tokio::test(flavor = "multi_thread")]
async fn another_column_under_the_name_or_in_the_configuration_moves_no_position_and_halts() {
    let renamed =
        "ALTER TABLE bookings RENAME created_at TO opened_at; ALTER TABLE bookings RENAME updated_at TO created_at";
    for (is_running, change, column) in
        [(true, renamed, "created_at"), (false, renamed, "created_at"), (false, "", "updated_at")]
    {
        let database = database().await;
        let mut owner = database.connect("postgres").await;
        run(&owner, &of_two_instants("clock_timestamp()")).await;
        let mut process = start(&database, "relay");
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        let second = "INSERT INTO bookings VALUES (2, '2026-11-21 08:00:30+00', '2026-11-21 08:00:05+00')";
        let mut printed = vec![1];
        if !is_running {
            process.signal(Signal::TERM);
            assert_eq!(process.wait().await, Some(0), "{}", process.log());
            printed.clear();
        }
        run(&owner, &format!("BEGIN; {second}; {change}; COMMIT")).await;
        let stream = format!("{}\ncreated_at = \"{column}\"", super::BOOKINGS);
        let text = crate::support::toml(&database, "relay", None, &super::stdout_relay(&stream));
        if !is_running {
            process = Process::spawn(&text, &["run"]);
        }
        let (message, hint) = halted(&owner, "order_changed").await;
        assert!(
            message.contains("integer of columns 2 and 1, and are now by") && message.contains("columns 3 and 1"),
            "{message}"
        );
        assert!(hint.contains("cursor seek r --at INSTANT"), "{hint}");
        let seek = ["cursor", "seek", "r", "--at", "2026-11-21T08:00:00Z", "--yes"];
        let (code, _, log) = crate::support::outbox_relay(&text, &seek).await;
        assert_eq!(code, Some(0), "{log}");
        resume(&mut owner).await;
        printed.extend([2, 1]);
        prints(&process, &printed).await;
    }
}

// Guarantee: horizon.order-changed
#[tokio::test(flavor = "multi_thread")]
async fn another_column_that_comes_with_a_weaker_stamp_is_noticed_after_the_weaker_rule_was_accepted() {
    let database = database().await;
    let mut owner = database.connect("postgres").await;
    run(&owner, &of_two_instants("now()")).await;
    let process = start(&database, "relay");
    prints(&process, &[1]).await;
    advanced(&owner, "1").await;
    run(
        &owner,
        "BEGIN; INSERT INTO bookings VALUES (2, '2026-11-21 08:00:30+00', '2026-11-21 08:00:05+00'); \
         ALTER TABLE bookings RENAME created_at TO opened_at; ALTER TABLE bookings RENAME updated_at TO created_at; COMMIT",
    )
    .await;
    halted(&owner, "horizon_rule_changed").await;
    resume(&mut owner).await;
    halted(&owner, "order_changed").await;
    prints(&process, &[1]).await;
}
