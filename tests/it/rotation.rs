//! A role is replaced by another one while replicas run: the steps of docs/SECURITY.md.

use outbox_testkit::postgres::{Auth, Options, Postgres};
use rustix::process::Signal;
use tokio_postgres::error::SqlState;

use crate::support::outside::{finding, json, printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, eventually, outbox_relay};

const PAGE: &str = include_str!("../../docs/SECURITY.md");

/// The SQL of the page that begins with these words.
fn step(begins: &str) -> String {
    let block = PAGE.split("```sql\n").find(|block| block.trim_start().starts_with(begins)).expect("the page has it");
    block.split_once("```").unwrap().0.to_owned()
}

/// A relay whose schedules run a query as the role `reporting`.
const JOBS: &str = "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\nrole = \"reporting\"\n\
                    [relay.source.schedule.queries.sums]\nsql = \"SELECT current_user AS who\"\n[relay.sink.stdout]\n";

// Guarantee: secrets.role
#[tokio::test(flavor = "multi_thread")]
async fn role_is_replaced_without_a_gap_by_the_steps_of_the_page() {
    let postgres = Postgres::start(Options { auth: Auth::Own, ..Options::default() }).await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    let mut migrated = postgres.connect("postgres", "postgres").await.unwrap();
    outbox_relay::migrate::up(&mut migrated).await.unwrap();
    owner
        .batch_execute(&format!(
            "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}, payload text); \
             CREATE INDEX ON bookings (created_at, id); CREATE ROLE relay LOGIN PASSWORD 'one'; CREATE ROLE relay2 LOGIN PASSWORD 'two'; \
             CREATE ROLE reporting; GRANT SELECT ON bookings TO relay, relay2; GRANT reporting TO relay; \
             INSERT INTO outbox.schedule (name, relay, rule, query) VALUES ('sums', 'jobs', 'FREQ=SECONDLY', 'sums')"
        ))
        .await
        .unwrap();
    let files = tempfile::tempdir().unwrap();
    let mut texts = Vec::new();
    for (role, password) in [("relay", "one"), ("relay2", "two")] {
        outbox_relay::migrate::grant(&owner, &outbox_relay::migrate::relay_grants(role, &[])).await.unwrap();
        let file = files.path().join(role);
        std::fs::write(&file, password).unwrap();
        texts.push(format!(
            "[postgres]\nurl = \"postgresql://{role}@127.0.0.1:{}/postgres?sslmode=disable\"\npassword_file = \"{}\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{}",
            postgres.port(),
            file.display(),
            stdout_relay("r", "") + JOBS
        ));
    }
    let add = async || owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    add().await;
    let mut first = Process::spawn(&texts[0], &["run", "--replica-id", "first"]);
    eventually(PATIENCE * 2, async || printed(&first, "r") == ["1"]).await;
    let by = async |replica: &str| {
        let sql = "SELECT count(*) FROM outbox.action WHERE status = 'completed' AND claimed_by = $1";
        owner.query_one(sql, &[&replica]).await.unwrap().get::<_, i64>(0) > 0
    };
    eventually(PATIENCE, async || by("first").await).await;
    // What is missing is found before a replica runs with the second role.
    let (code, check, _) = outbox_relay(&texts[1], &["check", "-o", "json"]).await;
    let document = json(&check);
    let found = finding(&document, "query_role").unwrap_or_else(|| panic!("{check}"));
    println!("{found}");
    assert_eq!((code, &found["relay"], &found["level"]), (Some(3), &"jobs".into(), &"error".into()), "{found}");
    assert_eq!(found["fix_sql"], "GRANT \"reporting\" TO \"relay2\";");
    for row in owner.query(&step("SELECT format"), &[]).await.unwrap() {
        owner.batch_execute(row.get(0)).await.unwrap();
    }
    let (code, check, _) = outbox_relay(&texts[1], &["check", "-o", "json"]).await;
    assert!(code == Some(0) && finding(&json(&check), "query_role").is_none(), "{check}");
    let second = Process::spawn(&texts[1], &["run", "--replica-id", "second"]);
    first.signal(Signal::TERM);
    assert_eq!(first.wait().await, Some(0));
    add().await;
    eventually(PATIENCE * 2, async || printed(&second, "r").contains(&"2".to_owned())).await;

    let refused = owner.batch_execute("DROP ROLE relay").await.expect_err("it has rights");
    assert_eq!(refused.code(), Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST));
    owner.batch_execute(&step("DROP OWNED")).await.unwrap();
    add().await;
    eventually(PATIENCE * 2, async || printed(&second, "r").contains(&"3".to_owned())).await;
    eventually(PATIENCE * 2, async || by("second").await).await;
    let failed = "SELECT count(*) FROM outbox.action WHERE status = 'failed'";
    assert_eq!(owner.query_one(failed, &[]).await.unwrap().get::<_, i64>(0), 0);
    let (code, out, log) = outbox_relay(&texts[1], &["status", "-o", "json"]).await;
    assert!(code == Some(0) && !log.contains("28P01") && !second.log().contains("28P01"), "{out}{log}");
    let (_, _, log) = outbox_relay(&texts[0], &["status"]).await;
    assert!(log.contains("28P01") && log.contains(files.path().join("relay").to_str().unwrap()), "{log}");
    drop(second);
    postgres.stop().await.unwrap();
}
