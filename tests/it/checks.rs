//! `check`: every finding with its code, level and fix.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use outbox_testkit::postgres::password;
use outbox_testkit::startup::free_port;
use serde_json::Value;

use crate::support::outside::{finding, json, keys, line, stdout_relay};
use crate::support::{
    CLOCK, Database, NOW, PATIENCE, Process, bookings, broker, database, eventually, kafka_relay, outbox_relay, toml,
    unique,
};

mod configuration;

#[tokio::test(flavor = "multi_thread")]
async fn check_prints_its_findings_as_documented_and_its_sql_fixes_what_it_found() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("check");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &kafka_relay("booking_events", &topic, ""));
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    assert_eq!((code, &document["ok"]), (Some(0), &Value::Bool(true)), "{out}{log}");
    assert_eq!(keys(&document), BTreeSet::from(["ok", "findings"]));
    for found in document["findings"].as_array().unwrap() {
        assert_eq!(keys(found), BTreeSet::from(["relay", "code", "level", "message", "fix_sql", "fix_setting"]));
        let level = found["level"].as_str().unwrap();
        assert!(["ok", "warn", "error"].contains(&level), "{found}");
        assert!(level == "ok" || found["fix_sql"].is_string() || found["fix_setting"].is_string(), "no fix: {found}");
    }
    let answered: BTreeSet<_> =
        document["findings"].as_array().unwrap().iter().map(|found| found["code"].as_str().unwrap()).collect();
    for code in
        ["connection", "primary", "version", "direct_connection", "schema_version", "privileges", "table", "topic"]
    {
        assert!(answered.contains(code), "{code} in {answered:?}");
    }
    assert_eq!(finding(&document, "topic").unwrap()["message"], format!("topic {topic} has 1 partition"));
    let unproven = finding(&document, "created_at_unproven").expect("writers may send their own created_at");
    assert_eq!((&unproven["relay"], &unproven["level"]), (&"booking_events".into(), &"warn".into()));
    owner.batch_execute(unproven["fix_sql"].as_str().unwrap()).await.unwrap();
    let document = json(&outbox_relay(&text, &["check", "-o", "json"]).await.1);
    assert!(finding(&document, "created_at_unproven").is_none() && finding(&document, "created_at_proven").is_some());

    let (code, out, _) = outbox_relay(&text, &["check"]).await;
    assert_eq!(code, Some(0));
    assert!(out.starts_with("server\n  ok     connection"), "{out}");
    assert!(out.contains("\nbooking_events\n") && out.ends_with("\n0 errors, 0 warnings\n"), "{out}");
}

// Guarantee: audit.check
#[tokio::test(flavor = "multi_thread")]
async fn check_says_which_relays_are_audited_and_that_no_receiver_is_contacted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let swept = "CREATE TABLE swept (LIKE bookings INCLUDING ALL, txid xid8 NOT NULL DEFAULT pg_current_xact_id()); \
                 CREATE INDEX ON swept (txid, created_at, id); GRANT SELECT ON swept TO relay";
    owner.batch_execute(swept).await.unwrap();
    let http = stdout_relay("http", "start = \"now\"")
        .replace("[relay.sink.stdout]", "[relay.sink.http]\nurl = \"http://127.0.0.1:1/rows\"\nbody = \"{{ id }}\"");
    let filtered = stdout_relay("filtered", "").replace("[relay.sink", "where = { customer = \"c\" }\n[relay.sink");
    let relays = [
        stdout_relay("plain", ""),
        stdout_relay("once", "guarantee = \"at_most_once\""),
        stdout_relay("swept", "").replace("public.bookings", "public.swept"),
        filtered,
        http,
    ];
    let text = toml(&database, "relay", None, &relays.concat());
    let (_, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(log, "");
    let document = json(&out);
    let message = |relay: &str, code: &str| {
        let findings = document["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["relay"] == relay && found["code"] == code);
        found.map(|found| found["message"].as_str().unwrap().to_owned())
    };
    let is_compared = "what is passed is compared with the table after a minute, ten minutes and an hour ([audit])";
    for (relay, why) in [
        ("plain", None),
        ("once", Some("its guarantee is at_most_once")),
        ("swept", Some("its column txid tells late rows in each turn")),
        ("filtered", Some("its source has a where")),
        ("http", None),
    ] {
        let expected = why.map(|why| format!("what is passed is not compared with the table: {why}"));
        assert_eq!(
            message(relay, "audit"),
            Some(expected.unwrap_or_else(|| is_compared.to_owned())),
            "{relay}: {document}"
        );
    }
    assert!(message("http", "receiver").unwrap().starts_with("the receiver is not contacted"), "{document}");
    assert_eq!(message("plain", "receiver"), None);
    let text = format!("[audit]\nenabled = false\n{}", toml(&database, "relay", None, &relays[0]));
    let document = json(&outbox_relay(&text, &["check", "-o", "json"]).await.1);
    let found = finding(&document, "audit").unwrap();
    assert_eq!(found["message"], "what is passed is not compared with the table: [audit] enabled is false");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_what_keeps_the_relay_from_its_own_tables() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("r", ""));
    let forbid = "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
                  CREATE TRIGGER \"no;\" BEFORE UPDATE ON outbox.cursor FOR EACH ROW EXECUTE FUNCTION public.refuse(); \
                  CREATE RULE quiet AS ON UPDATE TO outbox.control DO INSTEAD NOTHING; \
                  ALTER TABLE outbox.dead_letter ENABLE ROW LEVEL SECURITY; \
                  REVOKE EXECUTE ON FUNCTION pg_catalog.pg_lock_status() FROM PUBLIC";
    owner.batch_execute(forbid).await.unwrap();
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(3), "{out}");
    let document = json(&out);
    for (code, level, message) in [
        ("foreign_trigger", "warn", "trigger \"no;\" on outbox.cursor"),
        ("foreign_trigger", "warn", "rule quiet on outbox.control"),
        ("row_security", "error", "row security of outbox.dead_letter"),
        ("privilege_missing", "error", "role relay may not call pg_catalog.pg_lock_status()"),
    ] {
        let all = document["findings"].as_array().unwrap();
        let is_meant =
            |found: &&Value| found["code"] == code && found["message"].as_str().unwrap().starts_with(message);
        let found = all.iter().find(is_meant).unwrap_or_else(|| panic!("{code} {message} in {out}"));
        assert_eq!(found["level"], level, "{found}");
        owner.batch_execute(found["fix_sql"].as_str().unwrap()).await.unwrap();
    }
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(finding(&json(&out), "foreign_trigger").is_none(), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn table_of_thousands_of_partitions_is_delivered_with_the_deadline_that_check_prints() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let table = "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT \
                 clock_timestamp(), payload text, PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at); \
                 CREATE TABLE public.past PARTITION OF bookings DEFAULT; GRANT SELECT ON bookings TO relay";
    owner.batch_execute(table).await.unwrap();
    for first in (0..1500).step_by(500) {
        let make = format!(
            "DO $$ BEGIN FOR n IN {first}..{first} + 499 LOOP EXECUTE format('CREATE TABLE public.p%s PARTITION OF bookings FOR VALUES \
             FROM (%L) TO (%L)', n, timestamptz '2030-01-01' + n * interval '1 day', timestamptz '2030-01-02' + n * interval '1 day'); \
             END LOOP; END $$"
        );
        owner.batch_execute(&make).await.unwrap();
    }
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let text = toml(&database, "relay", None, &stdout_relay("r", ""));
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json", "--timeout", "60s"]).await;
    println!("{out}");
    let document = json(&out);
    let found = finding(&document, "many_partitions").unwrap_or_else(|| panic!("{code:?} {out}"));
    assert_eq!(found["fix_setting"], "Write deadline = \"8s\" under [relay.turn], or detach old partitions.");
    let text = text.replace("[relay.source.stream]", "[relay.turn]\ndeadline = \"8s\"\n[relay.source.stream]");
    let (_, out, _) = outbox_relay(&text, &["check", "-o", "json", "--timeout", "60s"]).await;
    assert!(finding(&json(&out), "many_partitions").is_none(), "{out}");
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 6, async || !process.out().is_empty()).await;
}

// Guarantee: horizon.bounded
#[tokio::test(flavor = "multi_thread")]
async fn now_is_bounded_only_with_rights_to_read_activity() {
    let database = database().await;
    bookings(&database, NOW).await;
    let told = async |role: &str| {
        let text = toml(&database, role, None, &stdout_relay("r", ""));
        let document = json(&outbox_relay(&text, &["check", "-o", "json"]).await.1);
        finding(&document, "created_at_unproven").expect("the default proves nothing").clone()
    };
    let found = told("relay").await;
    assert!(found["message"].as_str().unwrap().ends_with("rule transactions, unproven"), "{found}");
    assert!(found["fix_setting"].as_str().unwrap().contains("GRANT pg_read_all_stats TO \"relay\";"), "{found}");
    let found = told("relay_stats").await;
    assert!(found["message"].as_str().unwrap().ends_with("transactions, bounded by the latency window"), "{found}");
    assert!(found["fix_setting"].is_null(), "{found}");

    let process = Process::spawn(&toml(&database, "relay_stats", None, &stdout_relay("r", "")), &["run"]);
    line(&process, "relay ready").await;
    let (_, out, _) = outbox_relay(&toml(&database, "relay_stats", None, &stdout_relay("r", "")), &["status"]).await;
    assert!(out.contains("transactions (bounded by the latency window)"), "{out}");
}

/// Debian's pgbouncer in front of a database, one server process a transaction.
async fn pgbouncer(database: &Database) -> (tokio::process::Child, u16, tempfile::TempDir) {
    let program = std::path::Path::new("/usr/sbin/pgbouncer");
    assert!(program.exists(), "pgbouncer is missing (Debian: package pgbouncer; `make test` installs it)");
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port().unwrap());
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (users, file) = (dir.path().join("users"), dir.path().join("pgbouncer.ini"));
    std::fs::write(&users, format!("\"relay\" \"{}\"\n", password("relay"))).unwrap();
    let config = format!(
        "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = transaction\n\
         ignore_startup_parameters = extra_float_digits\n",
        database.postgres.port(),
        users.display()
    );
    std::fs::write(&file, config).unwrap();
    let mut command = tokio::process::Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.args(["-u", "nobody"]); // it does not run as root
    }
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    let child = command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn();
    let listens = || async { tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() };
    eventually(PATIENCE, listens).await;
    (child.unwrap(), port, dir)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_pooler_in_between_is_found_and_refused() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let (mut child, port, _dir) = pgbouncer(&database).await;
    let direct = toml(&database, "relay", None, &stdout_relay("s", ""));
    let text = direct.replace(&format!(":{}/", database.postgres.port()), &format!(":{port}/"));
    assert_ne!(text, direct);
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    assert_eq!((code, &document["ok"]), (Some(3), &Value::Bool(false)), "{out}{log}");
    let found = finding(&document, "pooler").unwrap_or_else(|| panic!("{out}"));
    assert_eq!(found["level"], "error");
    assert!(found["fix_setting"].is_string());
    child.kill().await.unwrap();
    child.wait().await.unwrap();
}

// Guarantee: failures.check-sizes
#[tokio::test(flavor = "multi_thread")]
async fn check_warns_of_rows_above_limit() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES (repeat('x', 20000000))").await.unwrap();
    let found = async |turn: &str| {
        let text = toml(&database, "relay", None, &(stdout_relay("r", "") + turn));
        let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
        finding(&json(&out), "row_too_large").cloned()
    };
    let warned = found("").await.unwrap();
    assert_eq!((&warned["relay"], &warned["level"]), (&"r".into(), &"warn".into()));
    let said = "among the newest 1,000 rows one takes 20000001 bytes; max_row_bytes is 16777216";
    assert_eq!(warned["message"], said);
    assert!(warned["fix_setting"].as_str().unwrap().contains("max_row_bytes = \"20MiB\""), "{warned}");
    assert!(found("[relay.turn]\nmax_row_bytes = \"20MiB\"\n").await.is_none());
}
