//! `migrate up --relay-role` and `--app-role` claim only rights that the roles have afterwards.

use std::collections::BTreeSet;

use outbox_testkit::postgres::login;
use tokio_postgres::Client;

use crate::support::outside::stdout_relay;
use crate::support::{CLOCK, Database, bookings, database, outbox_relay, toml, unique};

/// Everything that a role may do with relations of these schemas.
async fn rights(owner: &Client, role: &str) -> BTreeSet<String> {
    let sql = "SELECT format('%s %s.%s', p, c.relnamespace::regnamespace, c.relname) FROM pg_class AS c, \
               unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p \
               WHERE c.relkind IN ('r', 'v', 'p') AND c.relnamespace::regnamespace::text IN ('outbox', 'public') \
               AND has_table_privilege($1, c.oid, p)";
    owner.query(sql, &[&role]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

// Guarantee: observe.grants
#[tokio::test(flavor = "multi_thread")]
async fn grants_without_effect_are_named_and_fail() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (reader, writer) = (unique("reader").replace('-', "_"), unique("writer").replace('-', "_"));
    owner.batch_execute(&format!("CREATE ROLE {reader}; CREATE ROLE {writer}")).await.unwrap();
    // It has most of the rights itself, and may pass none of them on: PostgreSQL only warns.
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let (code, out, log) = outbox_relay(&text, &["migrate", "up", "--relay-role", &reader]).await;
    assert_eq!(code, Some(1), "{out}{log}");
    assert!(!out.contains("GRANT"), "nothing is claimed: {out}");
    assert!(!log.contains(&writer), "{log}");
    let up = ["migrate", "up", "--relay-role", &reader, "--app-role", &writer];
    let (code, _, log) = outbox_relay(&text, &up).await;
    assert_eq!(code, Some(1));
    let said = "error: the grants were not made: role relay may not grant all of them, so none was granted\n";
    assert!(log.starts_with(said), "{log}");
    for missing in [
        format!("  role {reader} lacks USAGE on schema outbox (owner postgres)\n"),
        format!("  role {reader} lacks SELECT, INSERT, UPDATE on outbox.cursor (owner postgres)\n"),
        format!("  role {reader} lacks SELECT on \"public\".\"bookings\" (owner postgres)\n"),
        format!(
            "  role {writer} lacks INSERT (topic), INSERT (key), INSERT (payload), INSERT (headers), INSERT (traceparent) on outbox.message (owner postgres)\n"
        ),
        "  -> run this command again as a superuser, or as a role that has the rights of postgres\n".to_owned(),
        format!("\n     GRANT SELECT ON \"public\".\"bookings\" TO \"{reader}\";"),
    ] {
        assert!(log.contains(&missing), "{missing} in {log}");
    }
    for role in [&reader, &writer] {
        assert!(rights(&owner, role).await.is_empty());
    }
    let text = toml(&database, "postgres", None, &stdout_relay("s", ""));
    let (code, out, log) = outbox_relay(&text, &up).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.contains("\ngranted:\nGRANT "), "it was done, and is no order to do it: {out}");
    assert!(out.contains(&format!("GRANT SELECT ON \"public\".\"bookings\" TO \"{reader}\";\n")), "{out}");
    assert!(rights(&owner, &reader).await.contains("SELECT public.bookings"));
    let inserts = "SELECT has_column_privilege($1, 'outbox.message', 'topic', 'INSERT')";
    assert!(owner.query_one(inserts, &[&writer]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn grant_on_missing_table_or_role_says_what_is_next() {
    let database = database().await;
    let text = toml(&database, "postgres", None, &stdout_relay("s", ""));
    let up = async |role: &str| outbox_relay(&text, &["migrate", "up", "--relay-role", role]).await;
    let next = ": the schema is migrated, and none was granted\n  -> create it, or correct its name in [relay.source.*] table, \
                --relay-role or --app-role; then run this command again\n";
    let (code, _, log) = up("relay").await;
    let reason = "error: the grants were not made: ERROR: relation \"public.bookings\" does not exist (42P01)";
    assert_eq!((code, log), (Some(1), format!("{reason}{next}")));
    let (code, _, log) = up("rely").await;
    let reason = "error: the grants were not made: ERROR: role \"rely\" does not exist (42704)";
    assert_eq!((code, log), (Some(1), format!("{reason}{next}")));
    bookings(&database, CLOCK).await;
    let (code, _, log) = up("relay").await;
    assert_eq!(code, Some(0), "{log}");
}

/// As replicas do that are rolled out together.
// Guarantee: observe.grants
#[tokio::test(flavor = "multi_thread")]
async fn migrators_at_the_same_time_all_grant() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let text = toml(&database, "postgres", None, &stdout_relay("s", ""));
    let up = ["migrate", "up", "--relay-role", "relay", "--app-role", "app"];
    for _ in 0..3 {
        let all = futures_util::future::join_all((0..4).map(|_| outbox_relay(&text, &up))).await;
        for (code, out, log) in all {
            assert_eq!(code, Some(0), "{out}{log}");
        }
    }
}

// Guarantee: observe.grants
#[tokio::test(flavor = "multi_thread")]
async fn grants_of_two_owners_succeed_one_after_the_other() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (platform, reader) = (unique("platform").replace('-', "_"), unique("reader").replace('-', "_"));
    owner
        .batch_execute(&format!(
            "DROP SCHEMA outbox CASCADE; {}; CREATE ROLE {reader}; \
             GRANT CREATE ON DATABASE {} TO {platform}",
            login(&platform),
            database.name
        ))
        .await
        .unwrap();
    let text = toml(&database, &platform, None, &stdout_relay("s", ""));
    let up = ["migrate", "up", "--relay-role", &reader];
    let (code, out, log) = outbox_relay(&text, &up).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(out.contains("applied migration 1\n") && !out.contains("GRANT"), "what was done is said: {out}");
    let lacks: Vec<_> = log.lines().filter(|line| line.contains(" lacks ")).collect();
    assert_eq!(lacks, [format!("  role {reader} lacks SELECT on \"public\".\"bookings\" (owner postgres)")], "{log}");
    assert!(rights(&owner, &reader).await.is_empty(), "all or nothing");
    let statement = log.lines().find(|line| line.starts_with("     GRANT ")).unwrap();
    owner.batch_execute(statement).await.unwrap();
    let (code, out, log) = outbox_relay(&text, &up).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.contains("GRANT SELECT, INSERT, UPDATE ON outbox.cursor"), "{out}");
    assert!(
        rights(&owner, &reader)
            .await
            .is_superset(&["UPDATE outbox.cursor", "SELECT public.bookings"].map(str::to_owned).into())
    );
}

/// The error of this statement as this role, if there is one.
async fn refusal(database: &Database, role: &str, sql: &str) -> Option<String> {
    let client = database.connect(role).await;
    client.batch_execute(sql).await.err().map(|error| error.as_db_error().unwrap().message().to_owned())
}

// Guarantee: observe.role-forgery
#[tokio::test(flavor = "multi_thread")]
async fn application_sets_neither_id_nor_txid_of_messages() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(&outbox_relay::migrate::app_grants("app")).await.unwrap();
    let refused = Some("permission denied for table message".to_owned());
    for forged in ["(id, topic) OVERRIDING SYSTEM VALUE VALUES (7, 't')", "(txid, topic) VALUES ('3', 't')"] {
        let sql = format!("INSERT INTO outbox.message {forged}");
        assert_eq!(refusal(&database, "app", &sql).await, refused, "{forged}");
    }
    let sql =
        "INSERT INTO outbox.message (topic, key, payload, headers, traceparent) VALUES ('t', 'k', 'p', '{}', 'x')";
    assert_eq!(refusal(&database, "app", sql).await, None);
}

// Guarantee: observe.role-forgery
#[tokio::test(flavor = "multi_thread")]
async fn relay_role_cannot_forge_operators() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let insert = |operator: &str| format!("INSERT INTO outbox.operation (operator, verb) VALUES ({operator}, 'v')");
    for operator in ["'postgres/ada'", "'relay/ada'", "NULL", "session_user"] {
        assert_eq!(refusal(&database, "relay", &insert(operator)).await, None, "{operator}");
    }
    let rows = owner.query("SELECT operator FROM outbox.operation ORDER BY id", &[]).await.unwrap();
    let operators: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(operators, ["relay/postgres/ada", "relay/ada", "relay", "relay"]);
    let refused = Some("permission denied for table operation".to_owned());
    for sql in [
        "UPDATE outbox.operation SET operator = 'postgres'",
        "DELETE FROM outbox.operation",
        "INSERT INTO outbox.operation (at, verb) VALUES ('epoch', 'v')",
    ] {
        assert_eq!(refusal(&database, "relay", sql).await, refused, "{sql}");
    }
}
