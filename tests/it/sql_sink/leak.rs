//! What a statement leaves in its session ends with its turn.

use super::{eventually, relay, toml};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database};

/// Records the settings that it finds, and leaves others.
const STATEMENT: &str = "WITH found AS (INSERT INTO app.found VALUES ($1, current_setting('DateStyle'), \
     current_setting('row_security'), current_setting('idle_in_transaction_session_timeout'), \
     (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objid = 4711)) RETURNING 1) \
     SELECT set_config('DateStyle', 'ISO, DMY', false), set_config('row_security', 'on', false), \
     set_config('idle_in_transaction_session_timeout', '0', false), pg_advisory_lock(4711) FROM found";

// Guarantee: read-models.session
#[tokio::test]
async fn settings_left_by_statement_end_with_turn() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; CREATE TABLE app.found (id bigint, style text, \
             security text, timeout text, locks bigint); GRANT SELECT, INSERT ON app.found TO relay",
        )
        .await
        .unwrap();
    let relays = relay("leaks", "guarantee = \"in_database\"", STATEMENT, "\"id\"", "[relay.turn]\nrows = 1");
    let _process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    for row in 1..=6 {
        owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
        let found = "SELECT count(*) FROM app.found";
        eventually(PATIENCE, async || owner.query_one(found, &[]).await.unwrap().get::<_, i64>(0) == row).await;
    }
    let found = "SELECT DISTINCT style, security, timeout <> '0', locks FROM app.found";
    let found = owner.query(found, &[]).await.unwrap();
    let found: Vec<(String, String, bool, i64)> =
        found.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    assert_eq!(found, [("ISO, MDY".to_owned(), "off".to_owned(), true, 0)]);
}

/// A path on which `=` is an operator that finds nothing.
const PATH: &str = "CREATE SCHEMA astray; CREATE FUNCTION astray.no(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'; \
     CREATE OPERATOR astray.= (LEFTARG = text, RIGHTARG = text, FUNCTION = astray.no); \
     CREATE SCHEMA app; GRANT USAGE ON SCHEMA astray, app TO relay_stats; CREATE TABLE app.found (id bigint); \
     GRANT SELECT, INSERT ON app.found TO relay_stats; \
     CREATE FUNCTION app.leave() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
     CREATE TRIGGER leave AFTER INSERT ON app.found FOR EACH ROW EXECUTE FUNCTION app.leave()";

/// The advance is in the statement's transaction: as another role it would be refused, and with other operators it would find no
/// row, for as long as the trigger is there.
// Guarantee: read-models.session
#[tokio::test]
async fn role_and_path_left_by_trigger_do_not_meet_the_advance() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(PATH).await.unwrap();
    let statement = "INSERT INTO app.found VALUES ($1)";
    let relays = relay("leaks", "guarantee = \"in_database\"", statement, "\"id\"", "[relay.turn]\nrows = 1");
    let _process = Process::spawn(&toml(&database, "relay_stats", None, &relays), &["run"]);
    let leaves = [
        "'role', 'pg_read_all_stats', true",
        "'role', 'pg_read_all_stats', false",
        "'search_path', 'astray, pg_catalog', true",
        "'search_path', 'astray, pg_catalog', false",
    ];
    for (row, leaves) in leaves.into_iter().enumerate() {
        let leave = format!(
            "CREATE OR REPLACE FUNCTION app.leave() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_catalog.set_config({leaves}); RETURN NULL; END $$; INSERT INTO bookings DEFAULT VALUES"
        );
        owner.batch_execute(&leave).await.unwrap();
        let found = "SELECT array_agg(id) = ARRAY(SELECT generate_series(1, $1::bigint)) FROM app.found";
        let expected = i64::try_from(row + 1).unwrap();
        let as_expected = async || owner.query_one(found, &[&expected]).await.unwrap().get::<_, Option<bool>>(0);
        eventually(PATIENCE, async || as_expected().await == Some(true)).await;
    }
}
