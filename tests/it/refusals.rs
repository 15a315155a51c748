//! What the program refuses to start with, word for word, and what only stops one relay until it is fixed.

use outbox_relay::migrate::VERSION;
use outbox_testkit::postgres::{Auth, Options, Postgres};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::Value;
use tokio::time::timeout;

use crate::support::outside::{get, json, line, listener, stdout_relay};
use crate::support::servers::prepare;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, kafka_relay, outbox_relay, toml};

mod until_fixed;

/// The last line of talk: what a person reads.
fn last(log: &str) -> &str {
    log.lines().last().unwrap_or_default()
}

fn config_of(postgres: &Postgres, user: &str) -> String {
    let url = postgres.url(user, "template_outbox");
    format!("[postgres]\nurl = \"{url}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n{}", stdout_relay("r", ""))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_ends_the_start_with_1() {
    let postgres = Postgres::start(Options { auth: Auth::Own, ..Options::default() }).await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    owner.batch_execute("CREATE ROLE relay LOGIN PASSWORD 'right'").await.unwrap();
    let url = format!("postgresql://relay:hunter2@127.0.0.1:{}/postgres?sslmode=disable", postgres.port());
    let text = format!("[postgres]\nurl = \"{url}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n{}", stdout_relay("r", ""));
    let (code, out, log) = outbox_relay(&text, &["run"]).await;
    let port = postgres.port();
    let told = format!(
        "error: cannot connect to PostgreSQL at 127.0.0.1:{port}/postgres as relay: FATAL: password authentication \
         failed for user \"relay\" (28P01); the password is from [postgres] url or PGPASSWORD\n  -> Correct the role, its password \
         (the message says where it is from) or pg_hba.conf.\n"
    );
    assert!(log.ends_with(&told), "{log}");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(!log.contains("hunter2"), "{log}");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, b"wrong\n").unwrap();
    let path = file.path().display();
    let text = text.replace(":hunter2@", "@").replace("[admin]", &format!("password_file = \"{path}\"\n[admin]"));
    let (_, _, log) = outbox_relay(&text, &["run"]).await;
    let told =
        format!("(28P01); the password is from {path} ([postgres] password_file), read again for every connection\n");
    assert!(log.contains(&told), "{log}");
    postgres.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_reason_why_there_is_no_connection_has_its_own_fix() {
    let postgres = Postgres::start(Options { auth: Auth::Own, ..Options::default() }).await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    owner.batch_execute("CREATE ROLE relay LOGIN PASSWORD 'right'").await.unwrap();
    let empty = tempfile::NamedTempFile::new().unwrap();
    let (port, free) =
        (postgres.port(), std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
    let with_file = |file: &str| format!("relay@127.0.0.1:{port}/postgres?sslmode=disable\"\npassword_file = \"{file}");
    for (rest, finding, reason, fix) in [
        (
            format!("relay@127.0.0.1:{port}/postgres?sslmode=disable"),
            "credentials",
            "asks for a password, and none is configured",
            "Write it into the file of [postgres] password_file, or set PGPASSWORD.",
        ),
        (
            with_file(empty.path().to_str().unwrap()),
            "credentials",
            "([postgres] password_file) is empty",
            "Write the password into that file.",
        ),
        (
            with_file("no/such/file"),
            "credentials",
            "/no/such/file: No such file or directory",
            "a relative path counts from the directory that the program is started in.",
        ),
        (
            format!("relay:right@127.0.0.1:{port}/bookings?sslmode=disable"),
            "database_missing",
            "database \"bookings\" does not exist (3D000)",
            "Correct the database's name in [postgres] url, or create the database.",
        ),
        (
            format!("relay:right@127.0.0.1:{free}/postgres?sslmode=disable"),
            "connection",
            "Connection refused",
            "Check host, port and sslmode of [postgres] url, and that the server runs and can be reached from here.",
        ),
    ] {
        let text = format!("[postgres]\nurl = \"postgresql://{rest}\"\n{}", stdout_relay("r", ""));
        let (code, _, log) = outbox_relay(&text, &["status"]).await;
        assert!(log.contains(reason) && last(&log).ends_with(fix) && code == Some(1), "{rest}: {log}");
        let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
        let found = json(&out)["findings"][0].clone();
        assert_eq!((found["code"].as_str(), code), (Some(finding), Some(3)), "{rest}: {out}");
        assert!(found["fix_setting"].as_str().unwrap().ends_with(fix), "{rest}: {out}");
    }
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn a_kafka_that_does_not_answer_is_told_with_where_to_look() {
    let database = database().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let text = toml(&database, "relay", Some(&free), &kafka_relay("r", "bookings", ""));
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = document["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == "kafka_unreachable");
    let fix = found.unwrap_or_else(|| panic!("{out}"))["fix_setting"].as_str().unwrap().to_owned();
    assert!(fix.starts_with("Check [kafka] bootstrap_servers, and that the brokers run") && code == Some(3), "{fix}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_without_kafka_reports_every_relay_in_time() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let names = ["a", "b", "c", "d"];
    let relays = names.map(|name| {
        // Of the last one, rows name the topic.
        let (topic, letters) = if name == "d" {
            ("bookings.{{ id }}", "")
        } else {
            ("bookings", "on_poison = \"dead_letter\"\ndead_letter_topic = \"letters\"")
        };
        kafka_relay(name, topic, letters)
    });
    let text = toml(&database, "relay", Some(&free), &relays.concat());
    let of = |document: &Value, relay: &str, code: &str| {
        let findings = document["findings"].as_array().unwrap();
        findings.iter().any(|finding| finding["relay"] == relay && finding["code"] == code)
    };
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(3), "{out}{log}");
    let document = json(&out);
    for name in names {
        assert!(of(&document, name, "table") && of(&document, name, "kafka_unreachable"), "{name}: {out}");
    }
    // Less time than Kafka is waited for: what PostgreSQL says of the first relay is reported all the same.
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json", "--timeout", "4s"]).await;
    assert_eq!(code, Some(3), "{out}{log}");
    let document = json(&out);
    assert!(of(&document, "a", "table") && of(&document, "", "no_answer"), "{out}");
    assert!(out.contains("no answer within 4s (--timeout) from the target of relay a"), "{out}");
    // PostgreSQL is asked about every relay before Kafka may use the time up, and is not blamed for it.
    for name in names {
        assert!(of(&document, name, "table"), "{name}: {out}");
    }
    assert!(!out.contains("from PostgreSQL"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_ends_with_2_and_names_line_key_and_fix() {
    let database = database().await;
    let text = toml(&database, "relay", None, &stdout_relay("r", "latencywindow = \"5ms\""));
    let (code, out, log) = outbox_relay(&text, &["run"]).await;
    let at = log.lines().nth(1).unwrap_or_default();
    assert!(log.starts_with("error: 1 problem in the configuration\n"), "{log}");
    assert!(at.ends_with("outbox-relay.toml:7:1: relay[r].latencywindow = \"5ms\": unknown key"), "{log}");
    assert_eq!(last(&log), "    fix: did you mean \"latency_window\"?");
    assert_eq!((code, out.as_str()), (Some(2), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_ends_the_start_with_1() {
    let database = database().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = toml(&database, "relay", None, &stdout_relay("r", "")).replace("127.0.0.1:0", &address.to_string());
    let (code, _, log) = outbox_relay(&text, &["run"]).await;
    assert_eq!(last(&log), format!("error: cannot listen on {address}: address already in use (set [admin] listen)"));
    assert_eq!(code, Some(1));
    let (_, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    let begins = log.contains("any free port") && log.contains("outbox-relay starts");
    assert!(begins, "a job is not kept from its work: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_ends_the_start_with_1() {
    let mut postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    // Without a primary to follow it replays what it has, and stays a standby.
    std::fs::write(postgres.socket_dir().join("data/standby.signal"), "").unwrap();
    postgres.restart().await.unwrap();
    let (code, _, log) = outbox_relay(&config_of(&postgres, "relay"), &["run"]).await;
    let port = postgres.port();
    assert_eq!(
        last(&log),
        format!(
            "error: PostgreSQL at 127.0.0.1:{port}/template_outbox as relay is a standby (pg_is_in_recovery): the relay \
             reads the primary only; point [postgres] url at the primary"
        )
    );
    assert_eq!(code, Some(1));
    let (code, out, _) = outbox_relay(&config_of(&postgres, "relay"), &["check", "-o", "json"]).await;
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &document["findings"][0]["code"]), (Some(3), &"standby".into()));
    postgres.stop().await.unwrap();
}

async fn start_with(schema: &str) -> (Option<i32>, String) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(schema).await.unwrap();
    let text = toml(&database, "relay", None, &stdout_relay("r", ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    (code, last(&log).to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_missing_older_or_too_new_ends_the_start_with_1() {
    let missing =
        "error: the database has no schema outbox: run `outbox-relay migrate up` with an owner's [postgres] url";
    assert_eq!(start_with("DROP SCHEMA outbox CASCADE").await, (Some(1), missing.to_owned()));
    let older =
        format!("error: schema outbox has version 1, this program needs {VERSION}: run `outbox-relay migrate up`");
    assert_eq!(start_with("DELETE FROM outbox.version WHERE version > 1").await, (Some(1), older));
    let next = VERSION + 1;
    let newer = format!(
        "error: schema outbox has version 99 and serves programs built for {next} and newer; this one was built for \
         {VERSION}: install a newer outbox-relay"
    );
    let sql = format!("INSERT INTO outbox.version (version, oldest_binary) VALUES (99, {next})");
    assert_eq!(start_with(&sql).await, (Some(1), newer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_that_still_serves_this_program_is_accepted() {
    let (code, log) = start_with("INSERT INTO outbox.version (version, oldest_binary) VALUES (99, 1)").await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_at_the_start_is_waited_for_and_readyz_says_so() {
    let mut postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    postgres.kill9().await.unwrap();
    let mut process = Process::spawn(&config_of(&postgres, "relay"), &["run"]);
    let listener = listener(&process).await;
    line(&process, "PostgreSQL cannot be reached; trying again").await;
    let (status, body) = get(&format!("{listener}/readyz")).await;
    assert_eq!((status, body.as_str()), (503, "PostgreSQL has not been reached yet: connect_failed\n"));
    let place = format!("cannot connect to PostgreSQL at 127.0.0.1:{}/template_outbox as relay: ", postgres.port());
    assert!(process.log().contains(&place), "the log has the details");
    assert_eq!(get(&format!("{listener}/livez")).await, (200, "alive\n".to_owned()));
    postgres.restart().await.unwrap();
    eventually(PATIENCE * 3, || async { get(&format!("{listener}/readyz")).await.0 == 200 }).await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    postgres.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn once_gives_up_with_1_when_the_server_stays_away() {
    let mut postgres = Postgres::start(Options::default()).await.unwrap();
    postgres.kill9().await.unwrap();
    let config = config_of(&postgres, "relay");
    let once = outbox_relay(&config, &["run", "--once", "--timeout", "1s"]);
    let (code, _, log) = tokio::time::timeout(PATIENCE * 2, once).await.expect("an end, whatever the server does");
    assert_eq!(last(&log), "error: PostgreSQL could not be reached within 1s (--timeout)");
    assert_eq!(code, Some(1));
    postgres.stop().await.unwrap();
}

// Guarantee: secrets.files
#[tokio::test(flavor = "multi_thread")]
async fn pipe_as_password_file_ends_commands_with_reason() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let text = format!(
        "[postgres]\nurl = \"postgresql://relay@127.0.0.1:1/app?sslmode=disable\"\npassword_file = \"{}\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n{}",
        pipe.display(),
        stdout_relay("s", "start = \"now\"")
    );
    for args in [&["check"][..], &["status"], &["run"]] {
        let (_, out, log) = timeout(PATIENCE * 4, outbox_relay(&text, args)).await.expect("it ends");
        assert!(format!("{out}{log}").contains("it is a pipe or a device, not a file"), "{args:?}: {out}{log}");
    }
}
