//! The page docs/howto/schedules.md is right: its TOML and its SQL, as they stand, carry out, and its views keep tenants
//! apart.

use outbox_testkit::provider::{Answer, Provider};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::support::pages::{blocks, connected, page};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay};

/// The only block of this language that has `mark`.
fn block(page: &str, language: &str, mark: &str) -> String {
    let found: Vec<&str> = blocks(page, language).into_iter().filter(|block| block.contains(mark)).collect();
    let [block] = found[..] else { panic!("{mark} stands in {} blocks", found.len()) };
    block.to_owned()
}

/// The page's configuration with its part on tenants, for this database and this provider.
fn config(page: &str, database: &Database, provider: &Provider, prefix: &str) -> impl Fn(&str) -> String {
    let host = "https://jobs.internal";
    let toml = block(page, "toml", "[[relay]]");
    assert!(toml.contains(host), "{toml}");
    let one = "[relay.source.schedule]\nper_tenant_concurrency = 1\n";
    let tenants = block(page, "toml", "schema = \"tenant_*\"").replace("tenant_*", &format!("{prefix}_*"));
    assert!(toml.contains(one) && tenants.starts_with(one), "{toml}{tenants}");
    let toml = toml.replace(one, &tenants).replace(host, &provider.url());
    let urls = ["postgres", "relay"].map(|role| (role.to_owned(), database.url(role)));
    move |role| {
        let (_, url) = urls.iter().find(|(name, _)| name == role).expect(role);
        format!("{}\n[admin]\nlisten = \"127.0.0.1:0\"\n", connected(&toml, url))
    }
}

async fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(client: &Client, sql: &str) -> T {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

// Guarantee: schedules.guide
#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_schedules_can_be_followed_word_for_word() {
    let page = page("schedules");
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let database = database().await;
    let owner = database.connect("postgres").await;
    let of = config(&page, &database, &provider, &database.name);
    let up = ["migrate", "up", "--relay-role", "relay", "--app-role", "app"];
    let (code, _, log) = outbox_relay(&of("postgres"), &up).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, out, log) = outbox_relay(&of("relay"), &["check"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let _replica = Process::spawn(&of("relay"), &["run"]);

    let app = database.connect("app").await;
    app.batch_execute(&block(&page, "sql", "VALUES ('report'")).await.unwrap();
    let planned = "SELECT count(*) FROM outbox.schedule WHERE next_at > now() AND (name = 'trial-ends' OR \
                   to_char(next_at AT TIME ZONE 'Europe/Berlin', 'ID DD HH24:MI:SS') ~ '^1 0[1-7] 09:00:00$')";
    eventually(PATIENCE * 2, async || one::<i64>(&owner, planned).await == 2).await;
    app.batch_execute(&block(&page, "sql", "enabled = false")).await.unwrap();
    eventually(PATIENCE * 2, async || provider.count() == 1).await;
    let request = provider.received().remove(0).request;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/trial-ends"));
    assert!(request.key.starts_with("jobs/") && request.body.contains(r#""user":"ada""#), "{request:?}");
    assert!(!one::<bool>(&owner, "SELECT enabled FROM outbox.schedule WHERE name = 'report'").await);

    let roles = tenants(&owner, &database.name, &page).await;
    app.batch_execute(&block(&page, "sql", "'cleanup'")).await.unwrap();
    app.batch_execute("UPDATE outbox.schedule SET rule = NULL, starts_at = now() WHERE name = 'cleanup'")
        .await
        .unwrap();
    eventually(PATIENCE * 2, async || {
        let made = "SELECT array_agg(tenant ORDER BY tenant) FROM outbox.action WHERE schedule = 'cleanup' AND status = 'completed'";
        one::<Option<Vec<String>>>(&owner, made).await.is_some_and(|made| made == roles)
    })
    .await;
    apart(&owner, &roles[0], &page).await;
}

/// Two tenants with their schemas, one of which has the page's views. Roles are the cluster's, so their names are made of the
/// database's.
async fn tenants(owner: &Client, prefix: &str, page: &str) -> [String; 2] {
    let roles = ["a", "b"].map(|name| format!("{prefix}_{name}"));
    for role in &roles {
        owner.batch_execute(&format!("CREATE ROLE {role}; CREATE SCHEMA {role}; GRANT {role} TO relay")).await.unwrap();
    }
    owner.batch_execute(&block(page, "sql", "CREATE VIEW").replace("tenant_a", &roles[0])).await.unwrap();
    roles
}

/// The tenant has its own schedules through the view, and nothing else.
async fn apart(owner: &Client, role: &str, page: &str) {
    owner.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    owner.batch_execute(&block(page, "sql", "'mine'").replace("tenant_a", role)).await.unwrap();
    let done = format!("SELECT count(*) FROM {role}.action WHERE schedule = 'mine' AND status = 'completed'");
    eventually(PATIENCE * 2, async || one::<i64>(owner, &done).await > 0).await;
    let schedules = format!("SELECT array_agg(name) FROM {role}.schedule");
    assert_eq!(one::<Vec<String>>(owner, &schedules).await, ["mine"], "its own only");
    for forbidden in [
        format!("INSERT INTO {role}.schedule (name, tenant, rule) VALUES ('x', 'another', 'FREQ=DAILY')"),
        format!("INSERT INTO {role}.schedule (name, relay, rule) VALUES ('x', 'another', 'FREQ=DAILY')"),
        format!("UPDATE {role}.schedule SET tenant = 'another'"),
        format!("UPDATE {role}.schedule SET next_at = now()"),
        "INSERT INTO outbox.schedule (name, relay, rule) VALUES ('x', 'jobs', 'FREQ=DAILY')".to_owned(),
        "SELECT FROM outbox.action".to_owned(),
    ] {
        let error = owner.batch_execute(&forbidden).await.expect_err(&forbidden);
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{forbidden}: {error}");
    }
    for absent in ["command", "query"] {
        let sql = format!("INSERT INTO {role}.schedule (name, rule, {absent}) VALUES ('x', 'FREQ=DAILY', 'any')");
        let error = owner.batch_execute(&sql).await.expect_err(&sql);
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_COLUMN), "{error}");
    }
    // The check option holds also for somebody who may write these columns.
    owner.batch_execute("RESET ROLE").await.unwrap();
    for change in ["tenant = 'another'", "relay = 'another'"] {
        let error = owner.batch_execute(&format!("UPDATE {role}.schedule SET {change}")).await.expect_err(change);
        assert_eq!(error.code(), Some(&SqlState::WITH_CHECK_OPTION_VIOLATION), "{error}");
    }
    owner.batch_execute(&format!("DELETE FROM {role}.schedule")).await.unwrap();
    let left = "SELECT array_agg(name ORDER BY name) FROM outbox.schedule";
    assert_eq!(one::<Vec<String>>(owner, left).await, ["cleanup", "report", "trial-ends"], "others' stay");
}
