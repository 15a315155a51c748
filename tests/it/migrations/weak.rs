//! Migrators that lack a privilege are told which, and what grants it.

use outbox_testkit::postgres::login;
use tokio_postgres::Client;

use super::bare;
use crate::support::outside::stdout_relay;
use crate::support::{Database, outbox_relay, toml, unique};

/// A role without rights, and its own configuration.
async fn weak(database: &Database, owner: &Client, prefix: &str) -> (String, String) {
    let role = unique(prefix).replace('-', "_");
    owner.batch_execute(&login(&role)).await.unwrap();
    let text = toml(database, &role, None, &stdout_relay("s", ""));
    (role, text)
}

// Guarantee: observe.weak-migrator
#[tokio::test(flavor = "multi_thread")]
async fn migrator_without_a_privilege_is_told_which_and_the_sql_that_grants_it() {
    let (database, owner, _) = bare().await;
    let (name, text) = weak(&database, &owner, "weak").await;
    let refused = async |text: &str, args: &[&str]| {
        let (code, out, log) = outbox_relay(text, args).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{log}");
        log
    };
    let datname: String = owner.query_one("SELECT current_database()::text", &[]).await.unwrap().get(0);
    let grant = format!("GRANT CREATE ON DATABASE \"{datname}\" TO \"{name}\";");
    let log = refused(&text, &["migrate", "up"]).await;
    assert!(log.contains(&format!("role {name} may not create schema outbox")) && log.contains(&grant), "{log}");
    owner.batch_execute(&grant).await.unwrap();
    assert_eq!(outbox_relay(&text, &["migrate", "up"]).await.0, Some(0), "what was advised is enough");

    // It owns the schema now: another role needs its rights, not only a grant to read.
    let (other, of_other) = weak(&database, &owner, "other").await;
    let grant = format!("GRANT \"{name}\" TO \"{other}\";");
    for args in [&["migrate", "up"][..], &["migrate", "down", "--to", "0"]] {
        let log = refused(&of_other, args).await;
        assert!(log.contains(&format!("schema outbox belongs to role {name}")) && log.contains(&grant), "{log}");
        assert!(!log.contains("--relay-role"), "{log}");
    }
    let rights = format!("GRANT USAGE ON SCHEMA outbox TO {other}; GRANT SELECT ON outbox.version TO {other}");
    owner.batch_execute(&rights).await.unwrap();
    let log = refused(&of_other, &["migrate", "down", "--to", "0"]).await;
    assert!(log.contains("must be owner") && log.contains(&grant), "{log}");
    owner.batch_execute(&grant).await.unwrap();
    assert_eq!(
        outbox_relay(&of_other, &["migrate", "down", "--to", "0"]).await.0,
        Some(0),
        "what was advised is enough"
    );
}

// Guarantee: observe.weak-migrator
#[tokio::test(flavor = "multi_thread")]
async fn migrator_that_owns_the_schema_only_is_told_who_owns_its_tables() {
    let (database, owner, _) = bare().await;
    let (first, of_first) = weak(&database, &owner, "first").await;
    let (second, of_second) = weak(&database, &owner, "second").await;
    let datname: String = owner.query_one("SELECT current_database()::text", &[]).await.unwrap().get(0);
    owner.batch_execute(&format!("GRANT CREATE ON DATABASE \"{datname}\" TO {first}")).await.unwrap();
    assert_eq!(outbox_relay(&of_first, &["migrate", "up"]).await.0, Some(0));
    // As a restore by another role may leave it.
    owner.batch_execute(&format!("ALTER SCHEMA outbox OWNER TO {second}")).await.unwrap();
    let (code, _, log) = outbox_relay(&of_second, &["migrate", "down", "--to", "0"]).await;
    let grant = format!("GRANT \"{first}\" TO \"{second}\";");
    assert!(code == Some(1) && log.contains(&format!("belongs to role {first}")) && log.contains(&grant), "{log}");
    owner.batch_execute(&grant).await.unwrap();
    // A member that does not inherit has the same right to become the owner, and none of its rights.
    let aside = match owner
        .query_one("SELECT current_setting('server_version_num')::integer", &[])
        .await
        .unwrap()
        .get::<_, i32>(0)
    {
        160_000.. => format!("GRANT \"{first}\" TO \"{second}\" WITH INHERIT FALSE"),
        _ => format!("ALTER ROLE {second} NOINHERIT"),
    };
    owner.batch_execute(&aside).await.unwrap();
    let (code, _, log) = outbox_relay(&of_second, &["migrate", "down", "--to", "0"]).await;
    let (_, advised) = log.split_once("whose rights").expect(&log);
    let (_, sql) = advised.split_once("have a superuser run: ").unwrap();
    assert_eq!(code, Some(1), "{log}");
    owner.batch_execute(sql.split_once(';').unwrap().0).await.unwrap();
    let (code, _, log) = outbox_relay(&of_second, &["migrate", "down", "--to", "0"]).await;
    assert_eq!(code, Some(0), "what was advised is enough: {log}");
}
