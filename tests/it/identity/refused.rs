//! Tables that cannot be read as a stream without loss are refused, with what fixes it.

use serde_json::Value;

use super::{BOOKINGS, halted, prints, run, stdout_relay};
use crate::support::{Process, bookings, database, outbox_relay, toml};

const KEY: &str = "PRIMARY KEY (created_at, id)";
const CLOCK: &str = "created_at timestamptz NOT NULL DEFAULT clock_timestamp()";

/// How a table is made, what else the source says, the code, and a part of the fix.
fn cases() -> Vec<(String, &'static str, &'static str, &'static str)> {
    let table = |columns: &str| format!("CREATE TABLE bookings ({columns})");
    let plain = format!("id bigint NOT NULL, {CLOCK}, {KEY}");
    vec![
        (
            format!("CREATE TABLE t ({plain}); CREATE VIEW bookings AS SELECT * FROM t"),
            "",
            "table_kind",
            "Read the table behind the view.",
        ),
        (
            format!("CREATE TABLE t ({plain}); CREATE MATERIALIZED VIEW bookings AS SELECT * FROM t"),
            "",
            "table_kind",
            "Read the table behind the view.",
        ),
        (
            "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; \
             CREATE FOREIGN TABLE bookings (id bigint NOT NULL, created_at timestamptz NOT NULL) SERVER s"
                .to_owned(),
            "",
            "table_kind",
            "Run the relay where the table is.",
        ),
        ("CREATE SEQUENCE bookings".to_owned(), "", "table_kind", "Correct [relay.source.stream] table."),
        (
            table("id bigint NOT NULL, created_at timestamptz DEFAULT clock_timestamp(), UNIQUE (created_at, id)"),
            "",
            "column_nullable",
            ".bookings ALTER COLUMN \"created_at\" SET NOT NULL;",
        ),
        (
            table(&format!("id bigint, {CLOCK}, UNIQUE (created_at, id)")),
            "",
            "column_nullable",
            ".bookings ALTER COLUMN \"id\" SET NOT NULL;",
        ),
        (table(&format!("id bigint NOT NULL, {CLOCK}")), "", "not_unique", ".bookings (\"created_at\", \"id\");"),
        (
            table(&format!("id bigint NOT NULL, {CLOCK}"))
                + "; CREATE UNIQUE INDEX ON bookings (created_at, id) WHERE id > 0",
            "",
            "not_unique",
            "CREATE UNIQUE INDEX CONCURRENTLY",
        ),
        (
            table(&format!("id bigint NOT NULL, other text, {CLOCK}, UNIQUE (id, other)")),
            "",
            "not_unique",
            "CREATE UNIQUE INDEX CONCURRENTLY",
        ),
        (
            table(&format!("id numeric NOT NULL, {CLOCK}, {KEY}")),
            "",
            "column_type",
            "ADD COLUMN relay_id bigint GENERATED ALWAYS AS IDENTITY;",
        ),
        (
            table("id bigint NOT NULL, created_at date NOT NULL DEFAULT now(), PRIMARY KEY (created_at, id)"),
            "",
            "column_type",
            "ALTER COLUMN \"created_at\" TYPE timestamptz USING",
        ),
        (
            table("id bigint NOT NULL, created_at timestamp NOT NULL, PRIMARY KEY (created_at, id)"),
            "",
            "column_type",
            "TYPE timestamptz USING \"created_at\" AT TIME ZONE 'UTC';",
        ),
        (table(&plain), "time_zone = \"UTC\"", "column_type", "Remove [relay.source.stream] time_zone"),
        (
            table("id bigint NOT NULL, created_at timestamp NOT NULL, PRIMARY KEY (created_at, id)"),
            "time_zone = \"Europe/Berlin\"",
            "time_zone",
            "Name a zone of fixed offset",
        ),
        (
            table("id bigint NOT NULL, created_at timestamp NOT NULL, PRIMARY KEY (created_at, id)"),
            "time_zone = \"Nowhere/Never\"",
            "time_zone",
            "Name a zone of fixed offset",
        ),
        (table(&plain), "id = \"number\"", "column_missing", "Set [relay.source.stream] id to a column"),
        (table(&plain), "created_at = \"at\"", "column_missing", "Set [relay.source.stream] created_at to a column"),
        (
            table(&plain.replace("clock_timestamp()", "now()")),
            "horizon = \"writers\"",
            "horizon_too_weak",
            "Set horizon = \"auto\".",
        ),
        (
            table(&plain) + "; ALTER TABLE bookings ENABLE ROW LEVEL SECURITY",
            "",
            "row_security",
            "ALTER ROLE \"relay\" BYPASSRLS;",
        ),
        ("SELECT 1".to_owned(), "", "table_missing", "Correct [relay.source.stream] table"),
    ]
}

/// The errors that `check` finds: relay, code and fix. Its exit code must say whether there are some.
async fn errors(toml: &str) -> Vec<(String, String, String)> {
    let (code, out, log) = outbox_relay(toml, &["check", "-o", "json"]).await;
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {log}"));
    assert_eq!(report["ok"], code == Some(0), "{report}");
    assert!(code == Some(0) || code == Some(3), "{report}");
    let findings = report["findings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fix = |finding: &Value| text(&finding["fix_sql"]) + &text(&finding["fix_setting"]);
    let errors = findings.iter().filter(|finding| finding["level"] == "error");
    errors.map(|finding| (text(&finding["relay"]), text(&finding["code"]), fix(finding))).collect()
}

#[tokio::test]
async fn what_cannot_be_read_without_loss_is_refused_by_check_with_its_fix() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let mut relays = String::new();
    for (n, (make, source, ..)) in cases().iter().enumerate() {
        let schema = format!("CREATE SCHEMA s{n}; GRANT USAGE ON SCHEMA s{n} TO relay; SET search_path = s{n}");
        run(&owner, &format!("{schema}; {make}; GRANT SELECT ON ALL TABLES IN SCHEMA s{n} TO relay")).await;
        let relay = stdout_relay(&format!("table = \"s{n}.bookings\"\n{source}"));
        relays.push_str(&relay.replace("name = \"r\"", &format!("name = \"r{n}\"")));
    }
    let errors = errors(&toml(&database, "relay", None, &relays)).await;
    for (n, (make, source, code, fix)) in cases().into_iter().enumerate() {
        let own = |(relay, ..): &&(String, String, String)| *relay == format!("r{n}");
        let own: Vec<_> = errors.iter().filter(own).collect();
        let fix = fix.replace("\"public\"", &format!("\"s{n}\""));
        let found = own.iter().any(|(_, found, text)| found == code && text.contains(&fix));
        assert!(found, "{make} {source}: expected {code} with {fix:?}, found {own:?}");
    }
}

#[tokio::test]
async fn a_temporary_table_is_refused() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    run(
        &owner,
        &format!(
            "CREATE TEMPORARY TABLE bookings (id bigint NOT NULL, {CLOCK}, {KEY}); GRANT SELECT ON bookings TO relay"
        ),
    )
    .await;
    let schema = "SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'bookings'";
    let schema: String = owner.query_one(schema, &[]).await.unwrap().get(0);
    let relay = stdout_relay(&format!("table = \"{schema}.bookings\""));
    let errors = errors(&toml(&database, "relay", None, &relay)).await;
    assert!(errors.iter().any(|(_, code, fix)| code == "table_kind" && fix == "Use a permanent table."), "{errors:?}");
}

#[tokio::test]
async fn a_missing_privilege_is_refused_with_the_grant() {
    let database = database().await;
    let owner = bookings(&database, crate::support::CLOCK).await;
    run(&owner, "REVOKE SELECT ON bookings FROM relay").await;
    let toml = toml(&database, "relay", None, &stdout_relay(BOOKINGS));
    let found = errors(&toml).await;
    let fix = "GRANT SELECT ON \"public\".\"bookings\" TO \"relay\";";
    assert!(found.iter().any(|(_, code, text)| code == "privilege_missing" && text == fix), "{found:?}");
    run(&owner, "GRANT SELECT ON bookings TO relay; REVOKE USAGE ON SCHEMA public FROM PUBLIC, relay").await;
    let found = errors(&toml).await;
    assert!(found.iter().any(|(_, code, fix)| code == "privilege_missing" && fix.contains("ON SCHEMA")), "{found:?}");
}

#[tokio::test]
async fn a_refused_relay_halts_with_code_and_fix_and_goes_on_by_itself_once_fixed() {
    let database = database().await;
    let owner = bookings(&database, crate::support::CLOCK).await;
    run(&owner, "ALTER TABLE bookings ALTER COLUMN created_at DROP NOT NULL; INSERT INTO bookings DEFAULT VALUES")
        .await;
    let toml = toml(&database, "relay", None, &stdout_relay(BOOKINGS));
    let process = Process::spawn(&toml, &["run"]);
    let (message, hint) = halted(&owner, "column_nullable").await;
    assert_eq!(message, "public.bookings.created_at may be NULL: such rows would be skipped silently");
    assert_eq!(hint, "ALTER TABLE public.bookings ALTER COLUMN \"created_at\" SET NOT NULL;");
    run(&owner, &hint).await;
    prints(&process, &[1]).await;
    let halts = "SELECT count(*) FROM outbox.cursor_status WHERE halted";
    assert_eq!(owner.query_one(halts, &[]).await.unwrap().get::<_, i64>(0), 0);
}
