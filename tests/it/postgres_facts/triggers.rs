//! Which triggers fire, in which order, and what they can set.

use tokio_postgres::Client;

use super::{major, run, table, value};

/// A BEFORE trigger that adds its name to column `n`.
const NAMED: &str = "CREATE FUNCTION name() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
     NEW.n := concat_ws(' ', NEW.n, TG_NAME); RETURN NEW; END $$";

async fn last(owner: &Client, table: &str) -> Option<String> {
    value(owner, &format!("SELECT n FROM {table} ORDER BY id DESC LIMIT 1")).await
}

/// An ordinary trigger does not fire under `session_replication_role = replica`; one that is ENABLE ALWAYS does.
#[tokio::test]
async fn only_always_triggers_fire_for_replica_role() {
    let (_database, owner) = table("id bigint, n text").await;
    run(
        &owner,
        &format!(
            "{NAMED}; CREATE TRIGGER ordinary BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION name(); \
             CREATE TRIGGER replica BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION name(); \
             CREATE TRIGGER steady BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION name(); \
             ALTER TABLE t ENABLE ALWAYS TRIGGER steady; ALTER TABLE t ENABLE REPLICA TRIGGER replica"
        ),
    )
    .await;
    let enabled: String = value(
        &owner,
        "SELECT string_agg(tgenabled::text, '' ORDER BY tgname) FROM pg_trigger \
                                         WHERE tgrelid = 't'::regclass",
    )
    .await;
    assert_eq!(enabled, "ORA");
    run(&owner, "INSERT INTO t VALUES (1)").await;
    assert_eq!(last(&owner, "t").await.as_deref(), Some("ordinary steady"));
    run(&owner, "SET session_replication_role = replica; INSERT INTO t VALUES (2)").await;
    assert_eq!(last(&owner, "t").await.as_deref(), Some("replica steady"));
    run(&owner, "SET session_replication_role = local; INSERT INTO t VALUES (3)").await;
    assert_eq!(last(&owner, "t").await.as_deref(), Some("ordinary steady"));
}

/// BEFORE ROW triggers of a table fire in the byte order of their names: the last one decides what is stored.
#[tokio::test]
async fn before_row_triggers_fire_in_name_order() {
    let (_database, owner) = table("id bigint, n text").await;
    run(&owner, NAMED).await;
    for name in ["zz", "a", "Z", "é", "_", "aa"] {
        run(&owner, &format!("CREATE TRIGGER \"{name}\" BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION name()"))
            .await;
    }
    run(&owner, "INSERT INTO t VALUES (1)").await;
    assert_eq!(last(&owner, "t").await.as_deref(), Some("Z _ a aa zz é"));
}

/// A stored generated column is computed after BEFORE triggers: what a trigger sets in it is lost.
#[tokio::test]
async fn stored_generated_column_is_computed_after_before_triggers() {
    let (_database, owner) = table("id bigint, n text, g text GENERATED ALWAYS AS (upper(n)) STORED").await;
    run(
        &owner,
        "CREATE FUNCTION set() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         NEW.n := 'trigger'; NEW.g := 'trigger'; RETURN NEW; END $$; \
         CREATE TRIGGER set BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION set()",
    )
    .await;
    run(&owner, "INSERT INTO t (id, n) VALUES (1, 'statement')").await;
    assert_eq!(value::<String>(&owner, "SELECT g FROM t").await, "TRIGGER");
    run(&owner, "UPDATE t SET n = 'again'").await;
    assert_eq!(value::<String>(&owner, "SELECT g FROM t").await, "TRIGGER");
}

/// An AFTER trigger of the table's owner may change a row that a BEFORE trigger has stamped; the BEFORE UPDATE trigger
/// fires for that change, too.
#[tokio::test]
async fn before_update_trigger_fires_for_after_triggers_update() {
    let (_database, owner) = table("id bigint, n text").await;
    run(
        &owner,
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := 'stamped'; RETURN NEW; END $$; \
         CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         UPDATE t SET n = 'changed' WHERE id = NEW.id; RETURN NULL; END $$; \
         CREATE TRIGGER stamp BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION stamp(); \
         CREATE TRIGGER change AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION change()",
    )
    .await;
    run(&owner, "INSERT INTO t VALUES (1)").await;
    assert_eq!(last(&owner, "t").await.as_deref(), Some("changed"), "a trigger of INSERT alone does not see it");
    run(
        &owner,
        "CREATE TRIGGER again BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION stamp(); INSERT INTO t VALUES (2)",
    )
    .await;
    assert_eq!(last(&owner, "t").await.as_deref(), Some("stamped"));
}

/// A BEFORE ROW trigger of a partitioned root fires for rows that are written to a leaf directly: each leaf has its own.
/// ENABLE ALWAYS on the root reaches the leaves there are from 15 on, not before; those that come later take it over.
#[tokio::test]
async fn always_trigger_of_root_reaches_leaves() {
    let (_database, owner) = table("id bigint").await;
    run(
        &owner,
        &format!(
            "{NAMED}; CREATE TABLE root (id bigint, n text) PARTITION BY RANGE (id); \
             CREATE TABLE existing PARTITION OF root FOR VALUES FROM (0) TO (10); \
             CREATE TRIGGER stamp BEFORE INSERT ON root FOR EACH ROW EXECUTE FUNCTION name(); \
             ALTER TABLE root ENABLE ALWAYS TRIGGER stamp; \
             CREATE TABLE new PARTITION OF root FOR VALUES FROM (10) TO (20); \
             CREATE TABLE attached (id bigint, n text); \
             ALTER TABLE root ATTACH PARTITION attached FOR VALUES FROM (20) TO (30)"
        ),
    )
    .await;
    let enabled = owner
        .query("SELECT tgrelid::regclass::text, tgenabled::text FROM pg_trigger WHERE tgname = 'stamp' ORDER BY 1", &[])
        .await
        .unwrap();
    let enabled: Vec<(String, String)> = enabled.iter().map(|row| (row.get(0), row.get(1))).collect();
    let existing = if major(&owner).await >= 15 { "A" } else { "O" };
    let expected = [("attached", "A"), ("existing", existing), ("new", "A"), ("root", "A")];
    assert_eq!(enabled, expected.map(|(table, enabled)| (table.to_owned(), enabled.to_owned())));
    run(
        &owner,
        "SET session_replication_role = replica; INSERT INTO new VALUES (11); INSERT INTO attached VALUES (21)",
    )
    .await;
    for leaf in ["new", "attached"] {
        assert_eq!(last(&owner, leaf).await.as_deref(), Some("stamp"), "{leaf}");
    }
    // One leaf may differ from its root: what counts is each leaf's own trigger.
    run(&owner, "ALTER TABLE new ENABLE TRIGGER stamp; INSERT INTO new VALUES (12)").await;
    assert_eq!(last(&owner, "new").await, None);
    run(&owner, "INSERT INTO root VALUES (13)").await;
    assert_eq!(last(&owner, "new").await, None, "through the root, too");
}

/// A child by inheritance has none of its parent's triggers.
#[tokio::test]
async fn child_by_inheritance_has_no_trigger_of_parent() {
    let (_database, owner) = table("id bigint, n text").await;
    run(
        &owner,
        &format!(
            "{NAMED}; CREATE TRIGGER stamp BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION name(); \
             CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (1)"
        ),
    )
    .await;
    assert_eq!(last(&owner, "child").await, None);
}
