//! `[postgres] password_command`: a password that a program prints, and that is another one later.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use outbox_testkit::postgres::{Auth, Options, Postgres};

use crate::support::outside::{printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, eventually, outbox_relay};

// Guarantee: secrets.password-command
#[tokio::test(flavor = "multi_thread")]
async fn password_that_a_command_prints_is_asked_for_again_when_the_server_refuses_it() {
    let postgres = Postgres::start(Options { auth: Auth::Own, ..Options::default() }).await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    let mut migrated = postgres.connect("postgres", "postgres").await.unwrap();
    outbox_relay::migrate::up(&mut migrated).await.unwrap();
    owner
        .batch_execute(&format!(
            "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}, payload text); \
             CREATE INDEX ON bookings (created_at, id); CREATE ROLE relay LOGIN PASSWORD 'one'; \
             GRANT SELECT ON bookings TO relay; INSERT INTO bookings DEFAULT VALUES"
        ))
        .await
        .unwrap();
    outbox_relay::migrate::grant(&owner, &outbox_relay::migrate::relay_grants("relay", &[])).await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let (program, token, runs) = (files.path().join("token"), files.path().join("text"), files.path().join("runs"));
    let script = format!("#!/bin/sh\necho $1 >> {}\ncat {}\n", runs.display(), token.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let toml = format!(
        "[postgres]\nurl = \"postgresql://relay@127.0.0.1:{}/postgres?sslmode=disable\"\npassword_command = [\"{}\", \"--for\"]\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n{}",
        postgres.port(),
        program.display(),
        stdout_relay("r", "")
    );
    // It prints nothing: the file is not there.
    let (code, _, log) = outbox_relay(&toml, &["run"]).await;
    println!("{log}");
    assert_eq!(code, Some(1), "{log}");
    for word in ["[postgres] password_command", "No such file or directory", "Run it by hand"] {
        assert!(log.contains(word), "{word:?} in {log}");
    }
    fs::write(&token, "wrong-s3cret\n").unwrap();
    let (code, _, log) = outbox_relay(&toml, &["run"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("([postgres] password_command)") && !log.contains("wrong-s3cret"), "{log}");

    fs::write(&token, "one\n").unwrap();
    let replica = Process::spawn(&toml, &["run"]);
    eventually(PATIENCE * 2, async || printed(&replica, "r") == ["1"]).await;
    let so_far = fs::read_to_string(&runs).unwrap();
    let opened = so_far.lines().count() - 2;
    assert!((1..=2).contains(&opened), "{opened} runs for all connections of a start: {so_far}");
    fs::write(&token, "two\n").unwrap();
    owner.batch_execute("ALTER ROLE relay PASSWORD 'two'; INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'relay'";
    assert!(owner.query_one(ended, &[]).await.unwrap().get::<_, i64>(0) > 0);
    eventually(PATIENCE * 2, async || printed(&replica, "r").contains(&"2".to_owned())).await;
    postgres.stop().await.unwrap();
}
