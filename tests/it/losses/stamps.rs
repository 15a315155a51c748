//! Tables whose `created_at` can be sent although a default or a trigger stands there.
//!
//! Each test writes a row below a position that a reader has passed, in a way that asks for no privilege on the column and
//! needs none: the row is never delivered, so `check` must not call the table proven, and must name who can do it. The
//! trigger that `check` prints then closes that way: the same statement is stamped, and delivered.

use serde_json::Value;
use tokio_postgres::Client;

use crate::support::outside::{finding, json, stdout_relay};
use crate::support::reader::Reader;
use crate::support::{CLOCK, Database, bookings, database, outbox_relay, toml};

mod kinds;

use kinds::KINDS;

/// A value that every reader has passed.
const OLD: &str = "now() - interval '1 hour'";

/// One way to send a value.
struct Way<'a> {
    /// What the owner of the table sets up.
    setup: &'a str,
    /// Who writes.
    role: &'a str,
    /// The statement that writes one row, of customer `sent`.
    statement: &'a str,
    /// Whom the finding must name.
    named: &'a str,
}

/// What `check` says of `created_at`.
async fn verdict(database: &Database) -> Value {
    let text = toml(database, "relay", None, &stdout_relay("r", ""));
    let (_, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "created_at_proven").or_else(|| finding(&document, "created_at_unproven"));
    found.unwrap_or_else(|| panic!("no verdict: {out}{log}")).clone()
}

/// The ids of the rows that were sent, in the order of their making.
async fn sent(owner: &Client) -> Vec<String> {
    let sql = "SELECT id::text FROM bookings WHERE customer = 'sent' ORDER BY bookings.id";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// The way loses a row while the verdict is not "proven", and loses none under the trigger that `check` prints.
async fn closes(way: Way<'_>) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    // What `check` took for a proof once: no other role has a right to the column.
    owner
        .batch_execute("REVOKE INSERT ON bookings FROM app; GRANT INSERT (customer) ON bookings TO app")
        .await
        .unwrap();
    owner.batch_execute(way.setup).await.unwrap();
    let reader = Reader::new(&database, "relay").await;
    owner.batch_execute("INSERT INTO bookings (customer) VALUES ('first')").await.unwrap();
    reader.settled(&["1"]).await;

    let writer = database.connect(way.role).await;
    writer.batch_execute(way.statement).await.unwrap();
    assert_eq!(sent(&owner).await, ["2"], "one row was committed");
    reader.settled(&["1"]).await; // it is never delivered

    let found = verdict(&database).await;
    assert_eq!((&found["code"], &found["level"]), (&"created_at_unproven".into(), &"warn".into()), "{found}");
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("proven for rows that use the default") && message.contains(way.named), "{message}");

    owner.batch_execute(found["fix_sql"].as_str().unwrap()).await.unwrap();
    let found = verdict(&database).await;
    assert_eq!(found["code"], "created_at_proven", "{found}");
    writer.batch_execute(way.statement).await.unwrap();
    assert_eq!(sent(&owner).await, ["2", "3"]);
    reader.catalogue().await;
    reader.expect(&["1", "3"]).await;
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn owner_that_sends_created_at_is_not_proven() {
    closes(Way {
        setup: "GRANT CREATE ON SCHEMA public TO app; ALTER TABLE bookings OWNER TO app",
        role: "app",
        statement: &format!("INSERT INTO bookings (customer, created_at) VALUES ('sent', {OLD})"),
        named: "owner app",
    })
    .await;
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn view_that_sends_created_at_is_not_proven() {
    closes(Way {
        setup: "CREATE VIEW front AS SELECT customer, created_at FROM bookings; GRANT INSERT ON front TO app",
        role: "app",
        statement: &format!("INSERT INTO front (customer, created_at) VALUES ('sent', {OLD})"),
        named: "views",
    })
    .await;
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn definer_function_that_sends_created_at_is_not_proven() {
    closes(Way {
        setup: "CREATE FUNCTION book(at timestamptz) RETURNS void LANGUAGE sql SECURITY DEFINER AS \
                $$ INSERT INTO public.bookings (customer, created_at) VALUES ('sent', at) $$",
        role: "app",
        statement: &format!("SELECT book({OLD})"),
        named: "SECURITY DEFINER functions",
    })
    .await;
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn after_trigger_that_updates_created_at_is_not_proven() {
    closes(Way {
        setup: &format!(
            "CREATE FUNCTION back_date() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             UPDATE public.bookings SET created_at = {OLD} WHERE id = NEW.id AND customer = 'sent'; RETURN NULL; END $$; \
             CREATE TRIGGER back_date AFTER INSERT ON bookings FOR EACH ROW EXECUTE FUNCTION back_date()"
        ),
        role: "app",
        statement: "INSERT INTO bookings (customer) VALUES ('sent')",
        named: "triggers",
    })
    .await;
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn rule_that_sends_created_at_is_not_proven() {
    closes(Way {
        setup: "CREATE TABLE intake (customer text, at timestamptz); GRANT INSERT ON intake TO app; \
                CREATE RULE book AS ON INSERT TO intake DO INSTEAD \
                INSERT INTO bookings (customer, created_at) VALUES (NEW.customer, NEW.at)",
        role: "app",
        statement: &format!("INSERT INTO intake VALUES ('sent', {OLD})"),
        named: "rules",
    })
    .await;
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn replica_role_that_skips_the_trigger_is_not_proven() {
    closes(Way {
        setup: "GRANT INSERT (created_at) ON bookings TO app; \
                GRANT SET ON PARAMETER session_replication_role TO app; \
                CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at ON bookings \
                FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at()",
        role: "app",
        statement: &format!(
            "SET session_replication_role = replica; \
             INSERT INTO bookings (customer, created_at) VALUES ('sent', {OLD})"
        ),
        named: "trigger zz_stamp_created_at is not ENABLE ALWAYS",
    })
    .await;
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn generated_created_at_is_unproven_whatever_trigger_stands() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "ALTER TABLE bookings DROP COLUMN created_at; ALTER TABLE bookings ADD booked_at timestamptz NOT NULL, \
             ADD created_at timestamptz NOT NULL GENERATED ALWAYS AS (booked_at) STORED; \
             CREATE INDEX ON bookings (created_at, id); \
             CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE ON bookings \
             FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at(); \
             ALTER TABLE bookings ENABLE ALWAYS TRIGGER zz_stamp_created_at",
        )
        .await
        .unwrap();
    let reader = Reader::new(&database, "relay").await;
    owner.batch_execute("INSERT INTO bookings (booked_at) VALUES (now())").await.unwrap();
    reader.settled(&["1"]).await;
    let late = format!("INSERT INTO bookings (booked_at) VALUES ({OLD})");
    database.connect("app").await.batch_execute(&late).await.unwrap();
    reader.settled(&["1"]).await; // the second is never delivered

    let found = verdict(&database).await;
    assert_eq!(found["code"], "created_at_unproven", "{found}");
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("is generated") && message.ends_with("unproven"), "{message}");
    assert!(found["fix_sql"].is_null(), "no trigger helps: {found}");
    assert!(found["fix_setting"].as_str().unwrap().contains("DROP EXPRESSION"), "{found}");
}

// Guarantee: horizon.proven
#[tokio::test(flavor = "multi_thread")]
async fn printed_sql_proves_every_kind_of_table() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let back_date = format!(
        "CREATE FUNCTION back_date() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN NEW.created_at := {OLD}; RETURN NEW; END $$"
    );
    owner.batch_execute(&back_date).await.unwrap();
    let mut relays = String::new();
    for (n, (made, _)) in KINDS.iter().enumerate() {
        let made = made
            .replace("DEFAULT_CLOCK", CLOCK)
            .replace("STAMP", "CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at")
            .replace("CALL", "FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at()")
            .replace("s.", &format!("s{n}."));
        let grants = format!("GRANT USAGE ON SCHEMA s{n} TO relay; GRANT SELECT ON ALL TABLES IN SCHEMA s{n} TO relay");
        owner.batch_execute(&format!("CREATE SCHEMA s{n}; {made}; {grants}")).await.unwrap();
        relays += &stdout_relay(&format!("r{n}"), "").replace("public.bookings", &format!("s{n}.bookings"));
    }
    let text = toml(&database, "relay", None, &relays);
    let verdicts = async || -> Vec<Value> {
        let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
        let findings = json(&out)["findings"].as_array().unwrap().clone();
        findings.into_iter().filter(|found| found["code"].as_str().unwrap().starts_with("created_at_")).collect()
    };
    let before = verdicts().await;
    assert_eq!(before.len(), KINDS.len());
    for found in before {
        assert_eq!(found["code"], "created_at_unproven", "{found}");
        let sql = found["fix_sql"].as_str().unwrap();
        let kind: usize = found["relay"].as_str().unwrap()[1..].parse().unwrap();
        assert!(
            !KINDS[kind].0.contains("DISABLE TRIGGER") || !sql.contains("CREATE TRIGGER"),
            "the trigger that is there is enabled: {sql}"
        );
        owner.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    for (n, (_, later)) in KINDS.iter().enumerate() {
        owner.batch_execute(&later.replace("s.", &format!("s{n}."))).await.unwrap();
    }
    for found in verdicts().await {
        assert_eq!(found["code"], "created_at_proven", "{found}");
    }
    owner.batch_execute("SET session_replication_role = replica").await.unwrap();
    for (n, (made, _)) in KINDS.iter().enumerate() {
        // A value that chooses another partition is refused, not stamped.
        let value = if made.contains("RANGE") { "now()" } else { OLD };
        let insert =
            format!("INSERT INTO s{n}.bookings (id, created_at) SELECT id, {value} FROM generate_series(1, 8) AS id");
        owner.batch_execute(&insert).await.unwrap();
        let late = format!("SELECT count(*) FROM s{n}.bookings WHERE created_at < now() - interval '1 minute'");
        assert_eq!(owner.query_one(&late, &[]).await.unwrap().get::<_, i64>(0), 0, "s{n}");
    }
}
