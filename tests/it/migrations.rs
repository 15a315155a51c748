//! `migrate`: the schema up, down and printed; who may do what with it.

use std::collections::BTreeSet;

use outbox_relay::migrate::VERSION;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::support::outside::stdout_relay;
use crate::support::{CLOCK, Database, bookings, database, outbox_relay, toml};

mod weak;

/// A database without the schema, and a configuration of its owner.
async fn bare() -> (Database, Client, String) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("DROP SCHEMA outbox CASCADE").await.unwrap();
    let text = toml(&database, "postgres", None, &stdout_relay("s", ""));
    (database, owner, text)
}

/// Tables, columns and their types: the schema in a word.
async fn shape(owner: &Client) -> BTreeSet<String> {
    let sql = "SELECT format('%s.%s %s', table_name, column_name, data_type) FROM information_schema.columns \
               WHERE table_schema = 'outbox'";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_goes_up_and_down_and_status_tells_where_it_is() {
    let (_database, owner, text) = bare().await;
    let migrate = |arguments: &'static [&'static str]| outbox_relay(&text, arguments);
    let (code, out, _) = migrate(&["migrate", "status"]).await;
    let missing = "missing migrations: `outbox-relay migrate up`, as an owner, applies them\n";
    assert_eq!((code, out), (Some(3), format!("schema version 0, this program knows {VERSION}\n{missing}")));
    let (code, out, log) = migrate(&["migrate", "up"]).await;
    let applied: String = (1..=VERSION).map(|version| format!("applied migration {version}\n")).collect();
    assert_eq!((code, out), (Some(0), applied), "{log}");
    let made = shape(&owner).await;
    assert!(made.contains("message.txid xid8") && made.contains("cursor.position_id text"), "{made:?}");
    let (code, out, _) = migrate(&["migrate"]).await;
    assert_eq!((code, out), (Some(0), format!("schema outbox is at version {VERSION} already\n")));
    assert_eq!(migrate(&["migrate", "status"]).await.0, Some(0));
    let (code, out, log) = migrate(&["migrate", "down", "--to", "0"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.ends_with("took back migration 1\n"), "{out}");
    assert!(shape(&owner).await.is_empty());
    assert_eq!(migrate(&["migrate", "up"]).await.0, Some(0));
    assert_eq!(shape(&owner).await, made);
    let (code, _, log) = migrate(&["migrate", "down", "--to", "99"]).await;
    assert!(code == Some(2) && log.contains(&format!("99 is not in 0..={VERSION}")), "{log}");
    let misplaced: [(&[&str], &str); 4] = [
        (&["migrate", "--notify", "status"], "--notify goes with up"),
        (&["migrate", "down", "--to", "0", "--indexes"], "--indexes goes with up"),
        (&["migrate", "up", "--from", "3"], "--from goes with --print-sql"),
        (&["migrate", "status", "--print-sql"], "--print-sql goes with up and down"),
    ];
    for (arguments, said) in misplaced {
        let (code, _, log) = outbox_relay(&text, arguments).await;
        assert_eq!((code, log), (Some(2), format!("error: {said}\n")), "{arguments:?}");
    }
    assert_eq!(shape(&owner).await, made, "nothing was done");
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_sql_run_by_somebody_else_makes_the_same_schema_and_changes_nothing_by_itself() {
    let (_database, owner, text) = bare().await;
    let (code, sql, log) = outbox_relay(&text, &["migrate", "up", "--print-sql", "--relay-role", "relay"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(shape(&owner).await.is_empty(), "it was printed, not run");
    owner.batch_execute(&sql).await.unwrap();
    let printed = shape(&owner).await;
    // What a schema of an earlier version lacks, and no more: as an administrator runs it in an upgrade.
    let before = (VERSION - 1).to_string();
    assert_eq!(outbox_relay(&text, &["migrate", "down", "--to", &before]).await.0, Some(0));
    let (code, sql, log) = outbox_relay(&text, &["migrate", "up", "--print-sql", "--from", &before]).await;
    assert_eq!(code, Some(0), "{log}");
    owner.batch_execute(&sql).await.unwrap();
    assert_eq!(outbox_relay(&text, &["migrate", "status"]).await.0, Some(0));
    let (code, sql, _) = outbox_relay(&text, &["migrate", "down", "--to", "0", "--print-sql"]).await;
    assert_eq!(code, Some(0));
    owner.batch_execute(&sql).await.unwrap();
    assert!(shape(&owner).await.is_empty());
    assert_eq!(outbox_relay(&text, &["migrate", "up"]).await.0, Some(0));
    assert_eq!(shape(&owner).await, printed);
}

#[tokio::test(flavor = "multi_thread")]
async fn migrators_at_the_same_time_apply_each_migration_once() {
    let (_database, owner, text) = bare().await;
    let all = futures_util::future::join_all((0..5).map(|_| outbox_relay(&text, &["migrate", "up"]))).await;
    let said: Vec<_> = all.iter().map(|(_, out, _)| out.as_str()).collect();
    assert!(all.iter().all(|(code, _, _)| *code == Some(0)), "{all:?}");
    assert_eq!(said.iter().filter(|out| out.contains("applied migration 1\n")).count(), 1, "{said:?}");
    let rows: i64 = owner.query_one("SELECT count(*) FROM outbox.version", &[]).await.unwrap().get(0);
    assert_eq!(rows, i64::from(VERSION));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_view_function_and_column_has_a_comment() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let sql = "SELECT c.relname::text FROM pg_class AS c WHERE c.relnamespace = 'outbox'::regnamespace \
               AND c.relkind IN ('r', 'v', 'p', 'm') AND NOT c.relispartition AND obj_description(c.oid, 'pg_class') IS NULL \
               UNION ALL SELECT format('%s.%s', c.relname, a.attname) FROM pg_attribute AS a \
               JOIN pg_class AS c ON c.oid = a.attrelid WHERE c.relnamespace = 'outbox'::regnamespace \
               AND c.relkind IN ('r', 'v', 'p', 'm') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped \
               AND col_description(a.attrelid, a.attnum) IS NULL \
               UNION ALL SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'outbox'::regnamespace \
               AND obj_description(p.oid, 'pg_proc') IS NULL";
    let bare: Vec<String> = owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(bare.is_empty(), "without a comment: {bare:?}");
}

/// Everything that a role may do with relations of the database outside the catalogue.
async fn rights(owner: &Client, role: &str) -> BTreeSet<String> {
    let sql = "SELECT format('%s %s.%s', p, c.relnamespace::regnamespace, c.relname) FROM pg_class AS c, \
               unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p \
               WHERE c.relkind IN ('r', 'v', 'p') AND c.relnamespace::regnamespace::text IN ('outbox', 'public') \
               AND has_table_privilege($1, c.oid, p)";
    owner.query(sql, &[&role]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_relays_role_gets_exactly_what_it_needs_and_makes_no_ddl() {
    let (database, owner, text) = bare().await;
    owner.batch_execute("REVOKE ALL ON bookings FROM relay, app").await.unwrap();
    let up = ["migrate", "up", "--relay-role", "relay", "--app-role", "app"];
    let (code, out, log) = outbox_relay(&text, &up).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.contains("GRANT SELECT ON \"public\".\"bookings\" TO \"relay\";\n"), "{out}");
    let mut expected: BTreeSet<String> =
        ["SELECT outbox.version", "SELECT outbox.status", "SELECT outbox.operation", "SELECT public.bookings"]
            .map(str::to_owned)
            .into();
    for table in ["cursor", "control", "cursor_status", "dead_letter", "schedule_watch", "turn_progress"] {
        expected.extend(["SELECT", "INSERT", "UPDATE"].map(|right| format!("{right} outbox.{table}")));
    }
    for table in ["claim", "sent", "replica", "parked", "parked_key", "ahead", "audit_slice"] {
        expected.extend(["SELECT", "INSERT", "UPDATE", "DELETE"].map(|right| format!("{right} outbox.{table}")));
    }
    expected.extend(
        ["SELECT outbox.hold", "SELECT outbox.safe_to_delete", "SELECT outbox.message_partition"].map(str::to_owned),
    );
    expected.extend(["SELECT", "INSERT"].map(|right| format!("{right} outbox.template")));
    expected.extend(["SELECT", "UPDATE"].map(|right| format!("{right} outbox.request")));
    // Of a schedule it writes when it goes on, and nothing of what its owner has written.
    expected.extend(["SELECT outbox.schedule", "SELECT outbox.action", "UPDATE outbox.action"].map(str::to_owned));
    assert_eq!(rights(&owner, "relay").await, expected);
    let app = ["SELECT outbox.schedule", "DELETE outbox.schedule", "SELECT outbox.action"];
    assert_eq!(rights(&owner, "app").await, BTreeSet::from(app.map(str::to_owned)));
    let relay = database.connect("relay").await;
    for denied in [
        "DELETE FROM outbox.cursor",
        "TRUNCATE outbox.operation",
        "ALTER TABLE outbox.cursor ADD COLUMN x text",
        "CREATE TABLE outbox.mine ()",
        "DROP TABLE outbox.control",
        "INSERT INTO outbox.message (topic) VALUES ('t')",
        "INSERT INTO public.bookings DEFAULT VALUES",
        "UPDATE outbox.version SET version = 2",
        "UPDATE outbox.template SET relay = 'mine'",
        "SELECT outbox.make_request(false, NULL, 'u', 't', '{}', NULL, NULL, NULL, false)",
    ] {
        let error = relay.batch_execute(denied).await.expect_err(denied);
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{denied}: {error:?}");
    }
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let (code, out, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, out.lines().count()), (Some(0), 1), "these grants are enough: {log}");
    let (code, _, log) = outbox_relay(&text, &["migrate", "down", "--to", "0"]).await;
    assert_eq!(code, Some(1));
    let denied = "ERROR: must be owner of view safe_to_delete";
    let said = format!("error: migration {VERSION} down failed, nothing of it remains: {denied}");
    assert!(log.starts_with(&said), "{log}");
}

// Guarantee: retention.proven
#[tokio::test(flavor = "multi_thread")]
async fn message_stamp_is_always_on_after_an_upgrade() {
    let (_database, owner, text) = bare().await;
    let migrate = |arguments: &'static [&'static str]| outbox_relay(&text, arguments);
    let states = async || -> BTreeSet<String> {
        let sql = "SELECT format('%s %s', c.relkind, t.tgenabled) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid \
                   WHERE c.relnamespace = 'outbox'::regnamespace AND t.tgname = 'zz_stamp_created_at'";
        owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    let are = |expected: &[&str]| expected.iter().map(|&state| state.to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(migrate(&["migrate", "up"]).await.0, Some(0));
    assert_eq!(states().await, are(&["p A", "r A"]), "root and partitions");
    assert_eq!(migrate(&["migrate", "down", "--to", "7"]).await.0, Some(0));
    assert_eq!(states().await, are(&["p O", "r O"]));
    assert_eq!(migrate(&["migrate", "up"]).await.0, Some(0));
    assert_eq!(states().await, are(&["p A", "r A"]));
    // A table with rows stays without partitions until its owner makes them.
    assert_eq!(migrate(&["migrate", "down", "--to", "4"]).await.0, Some(0));
    owner.batch_execute("INSERT INTO outbox.message (topic) VALUES ('t')").await.unwrap();
    assert_eq!(migrate(&["migrate", "up"]).await.0, Some(0));
    assert_eq!(states().await, are(&["r A"]));
    owner.batch_execute("SELECT outbox.partition_messages()").await.unwrap();
    assert_eq!(states().await, are(&["p A", "r A"]));
}

// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn way_back_before_lanes_is_refused_while_rows_beyond_a_position_would_be_sent_again() {
    let (_database, owner, text) = bare().await;
    let migrate = |arguments: &'static [&'static str]| outbox_relay(&text, arguments);
    assert_eq!(migrate(&["migrate", "up"]).await.0, Some(0));
    let ahead = "INSERT INTO outbox.cursor (name, relay, position_created_at, position_id) VALUES ('lanes', 'lanes', '2026-11-01', '5'); \
                 INSERT INTO outbox.ahead (cursor, created_at, message_id, seek, since, written_by) \
                 SELECT name, '2026-11-02', '7', seek_applied, created_at, 'replica' FROM outbox.cursor";
    owner.batch_execute(ahead).await.unwrap();
    let (code, out, log) = migrate(&["migrate", "down", "--to", "15"]).await;
    assert_eq!(code, Some(1), "{out}{log}");
    let refused = "migration 16 down failed, nothing of it remains: \
                   ERROR: there are rows that were acknowledged beyond the position of their cursor";
    assert!(log.contains(refused) && log.contains("Remove in_flight from [relay.turn]"), "{log}");
    let left = owner.query_one("SELECT count(*) FROM outbox.ahead", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 1, "it is remembered");
    // The position has passed it: it would not be sent again.
    let passed = "UPDATE outbox.cursor SET position_created_at = '2026-11-02', position_id = '7'";
    owner.batch_execute(passed).await.unwrap();
    let (code, out, log) = migrate(&["migrate", "down", "--to", "15"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "took back migration 16\n"), "{log}");
    assert!(!shape(&owner).await.iter().any(|column| column.starts_with("ahead.")));
}
