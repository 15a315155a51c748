//! Who writes, and what the relay's own role is set to, makes no difference.

use outbox_testkit::postgres::login;
use tokio_postgres::Client;

use super::ROLES;
use crate::support::outside::stdout_relay;
use crate::support::{CLOCK, PATIENCE, Process, Reader, bookings, database, eventually, outbox_relay, toml};

const NONE: [&str; 0] = [];

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// A database's owner became superuser when one ran `migrate status`: the first statement of each session called what stood on the path
/// before PostgreSQL's own function.
// Guarantee: horizon.roles
#[tokio::test(flavor = "multi_thread")]
async fn functions_and_operators_on_the_owners_path_are_never_called() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let shadow = |name: &str, of: &str, result: &str| {
        format!(
            "CREATE FUNCTION evil.{name}({of}) RETURNS {result} LANGUAGE plpgsql AS \
             $$ BEGIN CREATE TABLE IF NOT EXISTS evil.called (); RETURN NULL; END $$;"
        )
    };
    let functions = [
        shadow("current_setting", "text", "text"),
        shadow("pg_is_in_recovery", "", "boolean"),
        shadow("clock_timestamp", "", "timestamptz"),
        shadow("times", "numeric, integer", "numeric"),
        shadow("format_type", "oid, integer", "text"),
        shadow("count", "bigint", "bigint"),
    ];
    run(&owner, &format!("CREATE SCHEMA evil; {}", functions.concat())).await;
    let name = &database.name;
    run(
        &owner,
        &format!(
            "CREATE OPERATOR evil.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = evil.times); \
             GRANT USAGE ON SCHEMA evil TO public; ALTER DATABASE {name} SET search_path = evil, pg_catalog, public; \
             ALTER DATABASE {name} SET quote_all_identifiers = on; INSERT INTO bookings DEFAULT VALUES"
        ),
    )
    .await;
    let relays = stdout_relay("s", "");
    for (role, args) in [
        ("postgres", &["migrate", "status"][..]),
        ("postgres", &["migrate", "up", "--relay-role", "relay"]),
        ("postgres", &["check"]),
        ("relay", &["check"]),
        ("relay", &["run", "--once", "--timeout", "20s"]),
        ("postgres", &["status"]),
    ] {
        let (code, out, log) = outbox_relay(&toml(&database, role, None, &relays), args).await;
        assert_eq!(code, Some(0), "{role} {args:?}: {out}{log}");
        assert!(!out.contains("rule transactions"), "{role} {args:?}: {out}");
    }
    let plain = database.connect("postgres").await;
    run(&plain, "SET search_path = ''").await;
    let rule: String = plain.query_one("SELECT rule FROM outbox.cursor", &[]).await.unwrap().get(0);
    assert_eq!(rule, "writers", "a default is known whatever PostgreSQL quotes");
    // As `psql` runs what `migrate up --print-sql` prints.
    run(&database.connect("postgres").await, "DROP SCHEMA outbox CASCADE").await;
    run(&database.connect("postgres").await, &outbox_relay::migrate::up_sql(0)).await;
    let called = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'called')";
    assert!(!plain.query_one(called, &[]).await.unwrap().get::<_, bool>(0));
}

// Guarantee: horizon.roles
#[tokio::test]
async fn a_writer_by_a_security_definer_function_holds_without_any_privilege_on_the_table() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let stranger = format!("nobody_{}", database.name);
        run(
            &owner,
            &format!(
                "{}; CREATE FUNCTION book() RETURNS void LANGUAGE sql SECURITY DEFINER \
                 SET search_path = public AS 'INSERT INTO bookings DEFAULT VALUES'",
                login(&stranger)
            ),
        )
        .await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let writer = database.connect(&stranger).await;
        run(&writer, "BEGIN; SELECT book()").await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        assert_eq!(reader.settled(&NONE).await.horizon.held_by.len(), 1);
        run(&writer, "COMMIT").await;
        reader.expect(&[1, 2]).await;
    }
}

// Guarantee: horizon.roles
#[tokio::test]
async fn a_member_that_does_not_inherit_its_privileges_holds() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let member = format!("member_{}", database.name);
        run(&owner, &format!("{} NOINHERIT IN ROLE app", login(&member))).await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let writer = database.connect(&member).await;
        run(&writer, "BEGIN; SET LOCAL ROLE app; INSERT INTO bookings DEFAULT VALUES; RESET ROLE").await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        assert_eq!(reader.settled(&NONE).await.horizon.held_by.len(), 1);
        run(&writer, "COMMIT").await;
        reader.expect(&[1, 2]).await;
    }
}

// Guarantee: horizon.roles
#[tokio::test]
async fn a_relay_works_whatever_its_roles_transaction_defaults_are() {
    for settings in [
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "default_transaction_deferrable = on",
    ] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let role = format!("relay_{}", database.name);
        let grants = outbox_relay::migrate::relay_grants(&role, &[("public", "bookings")]);
        run(&owner, &format!("{}; ALTER ROLE {role} SET {settings}; {grants}", login(&role))).await;
        let relay =
            "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n";
        let process = Process::spawn(&toml(&database, &role, None, relay), &["run"]);
        let writer = database.connect("app").await;
        for row in 1..=3 {
            run(&writer, "BEGIN; INSERT INTO bookings DEFAULT VALUES").await;
            run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
            run(&writer, "COMMIT").await;
            let come = || async { process.out().lines().count() == row * 2 };
            eventually(PATIENCE, come).await;
        }
        let advanced = "SELECT position_id = '6' FROM outbox.cursor";
        eventually(PATIENCE, || async { owner.query_one(advanced, &[]).await.unwrap().get(0) }).await;
    }
}
