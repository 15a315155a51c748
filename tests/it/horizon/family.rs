//! Rows come in through ancestors, leaves and children: the locks of the whole family count.

use outbox_relay::source::Rule;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::ROLES;
use crate::support::{Database, PATIENCE, Reader, database, eventually};

const NONE: [&str; 0] = [];
/// Blocks an insert after its `created_at` was read, while the key 7 is held by another session.
const BLOCK: &str = "CREATE FUNCTION public.block() RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN \
     PERFORM pg_advisory_xact_lock_shared(7); RETURN 'unblocked'; END $$;";

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// A partitioned `bookings` with two leaves, by id; its defaults call `block()` after the clock.
async fn partitioned(database: &Database) -> Client {
    let owner = database.connect("postgres").await;
    run(
        &owner,
        &format!(
            "{BLOCK} CREATE SEQUENCE ids; \
             CREATE TABLE bookings (id bigint NOT NULL DEFAULT nextval('ids'), \
             created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL DEFAULT 'c', \
             blocker text NOT NULL DEFAULT block(), PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at); \
             CREATE TABLE old PARTITION OF bookings FOR VALUES FROM (MINVALUE) TO ('2020-01-01'); \
             CREATE TABLE leaf PARTITION OF bookings FOR VALUES FROM ('2020-01-01') TO (MAXVALUE); \
             GRANT SELECT ON bookings TO relay, relay_stats; GRANT INSERT ON bookings, leaf TO app; \
             GRANT USAGE ON SEQUENCE ids TO app"
        ),
    )
    .await;
    owner
}

/// Runs an insert in a transaction of its own, and returns when it hangs in `block()`.
async fn blocked(database: &Database, gate: &Client, sql: &'static str) -> JoinHandle<()> {
    run(gate, "SELECT pg_advisory_lock(7)").await;
    let writer = database.connect("postgres").await;
    let hanging = tokio::spawn(async move { run(&writer, sql).await });
    let waiting = "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    eventually(PATIENCE, || async { gate.query_one(waiting, &[]).await.unwrap().get(0) }).await;
    hanging
}

/// The relations that others hold for writing.
async fn held(client: &Client) -> Vec<String> {
    let sql = "SELECT relation::regclass::text FROM pg_locks WHERE mode = 'RowExclusiveLock' AND granted \
               AND locktype = 'relation' AND pid <> pg_backend_pid() \
               AND relation IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'p')) \
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

// Guarantee: horizon.partitions
#[tokio::test]
async fn an_insert_through_a_partitioned_root_holds_while_its_default_is_evaluated() {
    // A relay of the leaf must wait too, although only the root is locked when the clock is read.
    for (role, table) in ROLES.into_iter().flat_map(|role| [(role, "bookings"), (role, "leaf")]) {
        let database = database().await;
        let owner = partitioned(&database).await;
        run(&owner, "GRANT SELECT ON leaf TO relay, relay_stats").await;
        let reader = Reader::of(&database, role, &format!("table = \"public.{table}\"")).await;
        assert_eq!(reader.shape.lock().await.rule, Rule::Writers);
        reader.settled(&NONE).await;
        let gate = database.connect("postgres").await;
        let hanging = blocked(&database, &gate, "INSERT INTO bookings DEFAULT VALUES").await;
        assert_eq!(held(&gate).await, ["bookings"]);
        run(&owner, "INSERT INTO bookings (blocker) VALUES ('no')").await;
        let sighting = reader.settled(&NONE).await;
        assert_eq!(sighting.horizon.held_by.len(), 1);
        run(&gate, "SELECT pg_advisory_unlock(7)").await;
        hanging.await.unwrap();
        reader.expect(&[1, 2]).await;
    }
}

// Guarantee: horizon.partitions (negative control)
#[tokio::test]
async fn without_the_ancestors_locks_the_same_row_is_lost() {
    let database = database().await;
    let owner = partitioned(&database).await;
    run(&owner, "GRANT SELECT ON leaf TO relay").await;
    let reader = Reader::of(&database, "relay", "table = \"public.leaf\"").await;
    reader.settled(&NONE).await;
    let gate = database.connect("postgres").await;
    let hanging = blocked(&database, &gate, "INSERT INTO bookings DEFAULT VALUES").await;
    run(&owner, "INSERT INTO leaf (blocker) VALUES ('no')").await;
    // A look that leaves the root out passes the second row; the first is behind the position then.
    let whole = reader.shape.lock().await.clone();
    reader.shape.lock().await.ancestors.clear();
    let blind = reader.watched().await;
    *reader.shape.lock().await = whole;
    reader.read(&blind).await.unwrap();
    assert_eq!(reader.delivered().await, ["2"]);
    run(&gate, "SELECT pg_advisory_unlock(7)").await;
    hanging.await.unwrap();
    reader.settled(&[2]).await;
}

// Guarantee: horizon.partitions
#[tokio::test]
async fn a_trigger_that_waits_before_the_row_is_stored_holds() {
    for role in ROLES {
        let database = database().await;
        let owner = partitioned(&database).await;
        let trigger = "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                       PERFORM block(); RETURN NEW; END $$; \
                       CREATE TRIGGER hold BEFORE INSERT ON leaf FOR EACH ROW WHEN (NEW.customer = 'slow') EXECUTE FUNCTION hold()";
        run(&owner, trigger).await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let gate = database.connect("postgres").await;
        let sql = "INSERT INTO bookings (customer, blocker) VALUES ('slow', 'no')";
        let hanging = blocked(&database, &gate, sql).await;
        run(&owner, "INSERT INTO bookings (blocker) VALUES ('no')").await;
        reader.settled(&NONE).await;
        run(&gate, "SELECT pg_advisory_unlock(7)").await;
        hanging.await.unwrap();
        reader.expect(&[1, 2]).await;
    }
}

// Guarantee: horizon.partitions
#[tokio::test]
async fn an_insert_directly_into_a_leaf_holds_the_roots_relay() {
    for role in ROLES {
        let database = database().await;
        let owner = partitioned(&database).await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let writer = database.connect("app").await;
        run(&writer, "BEGIN; INSERT INTO leaf (blocker) VALUES ('no')").await;
        run(&owner, "INSERT INTO bookings (blocker) VALUES ('no')").await;
        assert_eq!(reader.settled(&NONE).await.horizon.held_by.len(), 1);
        run(&writer, "COMMIT").await;
        reader.expect(&[1, 2]).await;
    }
}

// Guarantee: horizon.partitions
#[tokio::test]
async fn an_insert_into_an_inheritance_child_holds_the_parents_relay() {
    for role in ROLES {
        let database = database().await;
        let owner = crate::support::bookings(&database, crate::support::CLOCK).await;
        run(
            &owner,
            "CREATE TABLE child (note text, PRIMARY KEY (id)) INHERITS (bookings); CREATE INDEX ON child (created_at, id); \
             CREATE TABLE grandchild (PRIMARY KEY (id)) INHERITS (child); CREATE INDEX ON grandchild (created_at, id)",
        )
        .await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let writer = database.connect("postgres").await;
        run(&writer, "BEGIN; INSERT INTO grandchild (id) VALUES (100)").await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES; INSERT INTO child (id) VALUES (50)").await;
        assert_eq!(reader.settled(&NONE).await.horizon.held_by.len(), 1);
        run(&writer, "COMMIT").await;
        reader.expect(&[100, 1, 50]).await;
    }
}

// Guarantee: horizon.weakest
#[tokio::test]
async fn a_leafs_own_weaker_default_decides_the_rule() {
    let database = database().await;
    let owner = partitioned(&database).await;
    let reader = Reader::new(&database, "relay").await;
    assert_eq!(reader.shape.lock().await.rule, Rule::Writers);
    run(&owner, "ALTER TABLE leaf ALTER COLUMN created_at SET DEFAULT now()").await;
    reader.catalogue().await;
    assert_eq!(reader.shape.lock().await.rule, Rule::Transactions);
}
