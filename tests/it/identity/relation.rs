//! The table and what it is made of.

use super::{BOOKINGS, adopt, advanced, halted, printed, prints, resume, run, start, stdout_relay};
use crate::support::{CLOCK, Database, NOW, PATIENCE, bookings, database, eventually, outbox_relay, toml};

const ROLES: [&str; 2] = ["relay", "relay_stats"];
const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";

#[tokio::test]
async fn a_table_swapped_by_rename_halts_and_goes_on_when_renamed_back() {
    for role in ROLES {
        let database = database().await;
        let mut owner = bookings(&database, CLOCK).await;
        run(&owner, INSERT).await;
        let process = start(&database, role);
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        run(
            &owner,
            "BEGIN; ALTER TABLE bookings RENAME TO bookings_old; \
             CREATE TABLE bookings (LIKE bookings_old INCLUDING ALL); GRANT SELECT ON bookings TO relay, relay_stats; \
             INSERT INTO bookings DEFAULT VALUES; COMMIT",
        )
        .await;
        let (message, hint) = halted(&owner, "relation_replaced").await;
        assert!(message.starts_with("table public.bookings is another relation now (oid "), "{message}");
        assert!(message.contains("it was replaced or renamed. Rename it back, or accept the new one"), "{message}");
        assert!(hint.contains("cursor resume r") && hint.contains("`outbox-relay cursor adopt r`"), "{hint}");
        assert_eq!(printed(&process), ["1"]);
        run(
            &owner,
            "BEGIN; ALTER TABLE bookings RENAME TO bookings_new; ALTER TABLE bookings_old RENAME TO bookings; \
             INSERT INTO bookings DEFAULT VALUES; COMMIT",
        )
        .await;
        resume(&mut owner).await;
        prints(&process, &[1, 2]).await;
    }
}

// Guarantee: commands.adopt
#[tokio::test]
async fn a_replaced_table_that_is_accepted_is_read_after_the_position() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, INSERT).await;
    let process = start(&database, "relay");
    prints(&process, &[1]).await;
    advanced(&owner, "1").await;
    run(
        &owner,
        "BEGIN; CREATE TABLE fresh (LIKE bookings INCLUDING ALL); GRANT SELECT ON fresh TO relay; DROP TABLE bookings; \
         ALTER TABLE fresh RENAME TO bookings; ALTER TABLE bookings ALTER COLUMN id RESTART WITH 10; \
         INSERT INTO bookings DEFAULT VALUES; COMMIT",
    )
    .await;
    halted(&owner, "relation_replaced").await;
    adopt(&database, "relay", BOOKINGS).await;
    prints(&process, &["1", "10"]).await;
}

/// A partitioned `bookings` with one row in its one leaf, and a relay that has printed it. The leaves grant nothing.
async fn partitioned(database: &Database) -> tokio_postgres::Client {
    let owner = database.connect("postgres").await;
    run(
        &owner,
        "CREATE TABLE bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), \
         PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at); \
         CREATE TABLE leaf PARTITION OF bookings FOR VALUES FROM ('2020-01-01') TO ('2100-01-01'); \
         CREATE TABLE old (LIKE bookings INCLUDING ALL); \
         GRANT SELECT ON bookings TO relay, relay_stats; INSERT INTO bookings (id) VALUES (1)",
    )
    .await;
    owner
}

#[tokio::test]
async fn a_new_empty_partition_is_taken_in_silently_by_a_role_that_may_read_only_the_root() {
    for role in ROLES {
        let database = database().await;
        let owner = partitioned(&database).await;
        let process = start(&database, role);
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        run(&owner, "CREATE TABLE later PARTITION OF bookings FOR VALUES FROM ('2100-01-01') TO (MAXVALUE)").await;
        run(&owner, "ALTER TABLE bookings ATTACH PARTITION old FOR VALUES FROM (MINVALUE) TO ('2020-01-01')").await;
        run(&owner, "INSERT INTO bookings (id) VALUES (2)").await;
        prints(&process, &[1, 2]).await;
        let taken = "SELECT cardinality(relations) = 5 FROM outbox.cursor WHERE name = 'r' AND position_id = '2'";
        eventually(PATIENCE, || async { owner.query_opt(taken, &[]).await.unwrap().is_some_and(|row| row.get(0)) })
            .await;
        let errors = "SELECT count(*) FROM outbox.cursor_status WHERE halted OR last_error IS NOT NULL";
        assert_eq!(owner.query_one(errors, &[]).await.unwrap().get::<_, i64>(0), 0);
        assert!(!process.log().contains("turn failed"), "{}", process.log());
    }
}

// Guarantee: commands.adopt
#[tokio::test]
async fn an_attached_partition_with_rows_that_were_passed_halts() {
    for role in ROLES {
        let database = database().await;
        let owner = partitioned(&database).await;
        let process = start(&database, role);
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        run(
            &owner,
            "BEGIN; INSERT INTO old VALUES (7, '2019-06-01'); \
             ALTER TABLE bookings ATTACH PARTITION old FOR VALUES FROM (MINVALUE) TO ('2020-01-01'); \
             INSERT INTO bookings (id) VALUES (2); COMMIT",
        )
        .await;
        let (message, hint) = halted(&owner, "partition_attached").await;
        assert!(
            message.starts_with("partition public.old was attached to public.bookings with rows at or"),
            "{message}"
        );
        assert!(hint.contains("cursor resume r") && hint.contains("`outbox-relay cursor adopt r`"), "{hint}");
        assert_eq!(printed(&process), ["1"]);
        adopt(&database, role, BOOKINGS).await;
        prints(&process, &[1, 2]).await;
    }
}

// Guarantee: delivery.once-checked
#[tokio::test(flavor = "multi_thread")]
async fn run_once_does_not_end_well_before_a_turn_has_checked_a_new_partition() {
    let database = database().await;
    let owner = partitioned(&database).await;
    let text = toml(&database, "relay", None, &stdout_relay(BOOKINGS));
    let once = async || {
        let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "5s"]).await;
        (code, log)
    };
    assert_eq!(once().await.0, Some(0));
    // Nothing follows the position, and no turn gets the cursor.
    let holder = database.connect("postgres").await;
    run(&holder, "BEGIN; SELECT FROM outbox.cursor WHERE name = 'r' FOR UPDATE").await;
    run(&owner, "ALTER TABLE bookings ATTACH PARTITION old FOR VALUES FROM (MINVALUE) TO ('2020-01-01')").await;
    let (code, log) = once().await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("public.old is new to the cursor, and no turn has checked its rows yet"), "{log}");
    run(&holder, "ROLLBACK").await;
    let (code, log) = once().await;
    assert_eq!(code, Some(0), "{log}");
    // With a row that was passed it is a halt, whenever a turn comes to see it.
    run(
        &owner,
        "CREATE TABLE far (LIKE bookings INCLUDING ALL); INSERT INTO far VALUES (7, '1999-06-01'); \
         ALTER TABLE bookings DETACH PARTITION old; \
         ALTER TABLE bookings ATTACH PARTITION far FOR VALUES FROM (MINVALUE) TO ('2020-01-01')",
    )
    .await;
    let (code, log) = once().await;
    assert!(code == Some(1) && log.contains("partition public.far was attached"), "{log}");
}

#[tokio::test]
async fn an_attached_partition_with_rows_after_the_position_is_delivered() {
    for role in ROLES {
        let database = database().await;
        let owner = database.connect("postgres").await;
        run(
            &owner,
            "CREATE TABLE bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), \
             PRIMARY KEY (id, created_at)) PARTITION BY LIST (id); \
             CREATE TABLE one PARTITION OF bookings FOR VALUES IN (1, 2); CREATE INDEX ON bookings (created_at, id); \
             CREATE TABLE three (LIKE bookings INCLUDING ALL); \
             GRANT SELECT ON bookings TO relay, relay_stats; INSERT INTO bookings (id) VALUES (1)",
        )
        .await;
        let process = start(&database, role);
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        run(
            &owner,
            "INSERT INTO three (id) VALUES (3); ALTER TABLE bookings ATTACH PARTITION three FOR VALUES IN (3); \
             INSERT INTO bookings (id) VALUES (2)",
        )
        .await;
        prints(&process, &[1, 3, 2]).await;
    }
}

#[tokio::test]
async fn a_changed_default_or_a_dropped_trigger_halts_until_it_is_accepted() {
    let trigger = "CREATE TRIGGER zz BEFORE INSERT OR UPDATE OF created_at ON bookings FOR EACH ROW \
                   EXECUTE FUNCTION outbox.stamp_created_at(); ALTER TABLE bookings ENABLE ALWAYS TRIGGER zz";
    let weaker = "is writers as before, but proven for rows that use the default now";
    for (role, before, change, message) in [
        (
            "relay",
            "",
            "ALTER TABLE bookings ALTER COLUMN created_at SET DEFAULT now()",
            "was writers and is transactions",
        ),
        ("relay_stats", trigger, "DROP TRIGGER zz ON bookings", weaker),
        ("relay", trigger, "ALTER TABLE bookings DISABLE TRIGGER zz", weaker),
        (
            "relay",
            trigger,
            "CREATE FUNCTION last() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER zzz BEFORE INSERT ON bookings FOR EACH ROW EXECUTE FUNCTION last()",
            "now, and was proven before; trigger zzz runs last before a row is stored",
        ),
        ("relay", trigger, "ALTER TABLE bookings ENABLE TRIGGER zz", weaker),
        ("relay", "", "ALTER TABLE bookings ALTER COLUMN created_at DROP DEFAULT", "was writers and is transactions"),
    ] {
        let database = database().await;
        let mut owner = bookings(&database, CLOCK).await;
        run(&owner, before).await;
        run(&owner, INSERT).await;
        let process = start(&database, role);
        prints(&process, &[1]).await;
        advanced(&owner, "1").await;
        run(&owner, change).await;
        let (text, hint) = halted(&owner, "horizon_rule_changed").await;
        assert!(text.contains("the default or trigger of public.bookings.created_at has changed"), "{text}");
        assert!(text.contains(message), "{text}");
        assert!(hint.contains("cursor resume"), "{hint}");
        run(&owner, "INSERT INTO bookings (created_at) VALUES (clock_timestamp())").await;
        resume(&mut owner).await;
        prints(&process, &[1, 2]).await;
    }
}

#[tokio::test]
async fn a_default_that_was_fixed_halts_once_too_and_is_named() {
    let database = database().await;
    let mut owner = bookings(&database, NOW).await;
    run(&owner, INSERT).await;
    let process = start(&database, "relay");
    prints(&process, &[1]).await;
    run(&owner, "ALTER TABLE bookings ALTER COLUMN created_at SET DEFAULT clock_timestamp()").await;
    let (text, _) = halted(&owner, "horizon_rule_changed").await;
    assert!(text.contains("was transactions and is writers now"), "{text}");
    resume(&mut owner).await;
    run(&owner, INSERT).await;
    prints(&process, &[1, 2]).await;
}
