//! Whose rights functions have that the owner of a table or view makes run when it is read: docs/SECURITY.md names both as what remains.

use super::{run, value};
use crate::support::{Database, database};

/// A schema of the role `app`, with a function that says, by a row of `said`, that the role `relay` has run it.
async fn schema() -> (Database, tokio_postgres::Client) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    run(&owner, "CREATE SCHEMA mine AUTHORIZATION app").await;
    let app = database.connect("app").await;
    run(
        &app,
        "GRANT USAGE ON SCHEMA mine TO relay; CREATE TABLE mine.said (word text); GRANT INSERT, SELECT ON mine.said TO relay; \
         CREATE FUNCTION mine.say(word text) RETURNS void LANGUAGE sql AS 'INSERT INTO mine.said VALUES (word)'; \
         CREATE FUNCTION mine.run(word text) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
         IF current_user = 'relay' THEN PERFORM mine.say(word); END IF; RETURN 1; END $$; \
         CREATE TABLE mine.t (id integer, n integer); GRANT SELECT ON mine.t TO relay; INSERT INTO mine.t VALUES (1, 1)",
    )
    .await;
    (database, app)
}

/// A view reads its tables with its owner's rights, and calls functions with those of who reads it.
#[tokio::test]
async fn function_of_a_view_has_the_rights_of_who_reads_it() {
    let (database, app) = schema().await;
    run(
        &app,
        "CREATE VIEW mine.v AS SELECT id, mine.run('view ' || n) AS one FROM mine.t; GRANT SELECT ON mine.v TO relay; \
         REVOKE SELECT ON mine.t FROM relay",
    )
    .await;
    let relay = database.connect("relay").await;
    assert_eq!(value::<i32>(&relay, "SELECT one FROM mine.v").await, 1);
    assert_eq!(value::<String>(&app, "SELECT word FROM mine.said").await, "view 1");
}

/// Functions of constant arguments are run while a query is planned: of an index, of extended statistics, of a constraint of a child.
#[tokio::test]
async fn planner_runs_functions_of_a_tables_owner_with_the_rights_of_who_reads_it() {
    for (place, created) in [
        ("index", "CREATE INDEX ON mine.t ((mine.run('index') + id))"),
        ("statistics", "CREATE STATISTICS mine.s ON (mine.run('statistics') + id), n FROM mine.t"),
        ("child", "CREATE TABLE mine.child (CHECK (mine.run('child') + id > 0)) INHERITS (mine.t)"),
    ] {
        let (database, app) = schema().await;
        run(&app, created).await;
        let relay = database.connect("relay").await;
        relay.query("SELECT id FROM mine.t WHERE id = 1", &[]).await.unwrap();
        let said: String = value(&app, "SELECT COALESCE(min(word), 'nothing') FROM mine.said").await;
        assert_eq!(said, place);
    }
}
