//! What actions do: any sink, a query first, a program.

use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};

use super::{clients, having, relay};
use crate::support::{PATIENCE, Process, broker, database, eventually, outbox_relay, records, toml, unique};

/// A relay `jobs` with this below its source, and this sink.
fn jobs(source: &str, sink: &str) -> String {
    format!("[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n{source}\n[relay.turn]\ndeadline = \"2s\"\n{sink}\n")
}

/// Writes a schedule that is due now, with this payload and more columns.
async fn now(app: &tokio_postgres::Client, name: &str, payload: &str, more: &[(&str, &str)]) {
    let columns: String = more.iter().map(|(column, _)| format!(", {column}")).collect();
    let values: String = more.iter().map(|(_, value)| format!(", '{value}'")).collect();
    let sql = format!(
        "INSERT INTO outbox.schedule (name, relay, starts_at, payload{columns}) VALUES ('{name}', 'jobs', now(), '{payload}'{values})"
    );
    app.batch_execute(&sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_becomes_a_record_of_kafka() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let topic = unique("jobs");
    let broker = broker().await;
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let sink = format!(
        "[relay.sink.kafka]\ntopic = \"{topic}\"\nkey = \"tenant\"\npayload = {{ columns = [\"schedule\", \"n\"] }}"
    );
    let text = toml(&database, "relay", Some(&broker.bootstrap_servers()), &jobs("", &sink));
    now(&app, "report", "{\"n\": 12345678901234567890}", &[("tenant", "a")]).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(having(&owner, "report", "completed").await, 1);
    let found = records(&broker.bootstrap_servers(), &topic).await;
    assert_eq!(found[0].text(), "{\"n\":12345678901234567890,\"schedule\":\"report\"}");
}

// Guarantee: schedules.one-transaction
#[tokio::test(flavor = "multi_thread")]
async fn what_a_statement_changes_and_that_the_action_is_done_are_one_transaction() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner
        .batch_execute(
            "CREATE TABLE public.done (at timestamptz, schedule text, n integer CHECK (n < 100)); GRANT INSERT ON public.done TO relay",
        )
        .await
        .unwrap();
    let sink = "[relay.sink.sql]\nstatement = \"INSERT INTO public.done VALUES ($1, $2, ($3 ->> 'n')::integer)\"\n\
                parameters = [\"planned_at\", \"schedule\", \"payload\"]";
    let text = toml(&database, "relay", None, &jobs("", sink));
    now(&app, "good", "{\"n\": 7}", &[]).await;
    now(&app, "bad", "{\"n\": 700}", &[]).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    let row = owner.query_one("SELECT count(*), min(schedule), min(n) FROM public.done", &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1), row.get::<_, i32>(2)), (1, "good", 7));
    assert_eq!((having(&owner, "good", "completed").await, having(&owner, "bad", "failed").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_decides_whether_there_is_something_to_report_and_its_rows_are_the_templates_data() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE tenant_q NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT tenant_q TO relay; \
             CREATE SCHEMA tenant_q; GRANT USAGE ON SCHEMA tenant_q TO tenant_q; \
             CREATE TABLE tenant_q.orders (id integer, region text); INSERT INTO tenant_q.orders VALUES (1, 'n'), (2, 'n'), (3, 's'); \
             GRANT SELECT ON tenant_q.orders TO tenant_q",
        )
        .await
        .unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let source = "schema = \"tenant_*\"\nrole = \"{{ tenant }}\"\n[relay.source.schedule.queries.orders]\n\
                  sql = \"SELECT count(*) AS open, current_user AS who FROM orders WHERE region = $1 ->> 'region'\"\n\
                  when = { column = \"open\", above = 1 }";
    let sink = format!(
        "[relay.sink.http]\nurl = \"{}/reports\"\nbody = '{{{{ open }}}} {{{{ who }}}} {{{{ rows }}}}'",
        provider.url()
    );
    let text = toml(&database, "relay", None, &jobs(source, &sink));
    now(&app, "north", "{\"region\": \"n\"}", &[("tenant", "tenant_q"), ("query", "orders")]).await;
    now(&app, "south", "{\"region\": \"s\"}", &[("tenant", "tenant_q"), ("query", "orders")]).await;
    now(&app, "roleless", "{\"region\": \"s\"}", &[("query", "orders")]).await;
    now(&app, "unknown", "{}", &[("tenant", "tenant_q"), ("query", "x")]).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    let received = provider.received();
    assert_eq!(received.len(), 1, "{log}");
    assert_eq!(received[0].request.body, "2 tenant_q [{\"open\":2,\"who\":\"tenant_q\"}]");
    assert_eq!((having(&owner, "north", "completed").await, having(&owner, "south", "skipped").await), (1, 1));
    for (name, code) in [("roleless", "query_role"), ("unknown", "unknown_query")] {
        let sql = "SELECT error ->> 'code' FROM outbox.action WHERE schedule = $1 AND status = 'failed'";
        assert_eq!(owner.query_one(sql, &[&name]).await.unwrap().get::<_, String>(0), code);
    }
}

// Guarantee: schedules.tenant-schemas
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_for_each_tenant_is_carried_out_for_new_schemas_and_no_more_for_dropped_ones() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner.batch_execute("CREATE SCHEMA tenant_a; CREATE SCHEMA tenant_b; CREATE SCHEMA tenantless").await.unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "schema = \"tenant_*\"", ""));
    let _process = Process::spawn(&text, &["run"]);
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, rule) VALUES ('all', '*', 'jobs', 'FREQ=SECONDLY')",
    )
    .await
    .unwrap();
    let of = "SELECT count(*), max(planned_at)::text FROM outbox.action WHERE tenant = $1";
    let count = async |tenant: &str| owner.query_one(of, &[&tenant]).await.unwrap().get::<_, i64>(0);
    eventually(PATIENCE * 2, async || count("tenant_a").await > 0 && count("tenant_b").await > 0).await;
    owner.batch_execute("CREATE SCHEMA tenant_c; DROP SCHEMA tenant_b").await.unwrap();
    let b = count("tenant_b").await;
    eventually(PATIENCE, async || count("tenant_c").await > 2).await;
    assert!(count("tenant_b").await <= b + 1, "the drop was committed in the middle of at most one");
    assert_eq!(count("tenantless").await + count("*").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_starts_a_program_of_the_configuration_whose_progress_and_result_are_there() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let sink = "[relay.sink.command.programs.greet]\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"echo halfway >&2; cat; sleep 4; echo\"]\n\
                [relay.sink.command.programs.sleeps]\nprogram = \"/bin/sleep\"\nargs = [\"600\"]";
    let text = toml(&database, "relay", None, &jobs("", sink));
    let _process = Process::spawn(&text, &["run"]);
    now(&app, "greets", "{\"n\": 1}", &[("command", "greet")]).await;
    now(&app, "sleeps", "{}", &[("command", "sleeps"), ("timeout", "1 second")]).await;
    now(&app, "none", "{}", &[]).await;
    let progress = "SELECT progress FROM outbox.action WHERE schedule = 'greets'";
    let said = async || owner.query_opt(progress, &[]).await.unwrap().and_then(|row| row.get::<_, Option<String>>(0));
    eventually(PATIENCE, async || said().await.as_deref() == Some("halfway")).await;
    eventually(PATIENCE, async || having(&owner, "greets", "completed").await == 1).await;
    let result: String =
        owner.query_one("SELECT result FROM outbox.action WHERE schedule = 'greets'", &[]).await.unwrap().get(0);
    assert!(result.contains("\"n\":1") && result.contains("\"schedule\":\"greets\""), "{result}");
    eventually(PATIENCE, async || {
        having(&owner, "sleeps", "failed").await + having(&owner, "none", "failed").await == 2
    })
    .await;
    for (name, code) in [("sleeps", "command_timeout"), ("none", "command_missing")] {
        let sql = "SELECT error ->> 'code', finished_at - started_at < interval '8 seconds' FROM outbox.action WHERE schedule = $1";
        let row = owner.query_one(sql, &[&name]).await.unwrap();
        assert_eq!((row.get::<_, String>(0), row.get::<_, bool>(1)), (code.to_owned(), true), "{name}");
    }
}

// Guarantee: schedules.outage
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_takes_longer_than_the_schedule_allows_is_given_up_and_an_outage_is_waited_out() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|request| match request.path.as_str() {
        "/slow" => Answer::Late(Duration::from_secs(30)),
        _ if request.attempt < 3 => Answer::Refuse(503),
        _ => Answer::Accept,
    })
    .await
    .unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""))
        .replace("timeout = \"1s\"", "timeout = \"8s\"")
        .replace("deadline = \"2s\"", "deadline = \"15s\"");
    let _process = Process::spawn(&text, &["run"]);
    now(&app, "slow", "{}", &[("timeout", "1 second")]).await;
    now(&app, "out", "{}", &[]).await;
    eventually(PATIENCE, async || having(&owner, "slow", "failed").await == 1).await;
    eventually(PATIENCE * 2, async || having(&owner, "out", "completed").await == 1).await;
    let sql = "SELECT error ->> 'code', attempts FROM outbox.action WHERE schedule = 'slow'";
    let row = owner.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i32>(1)), ("action_timeout", 1));
}

// Guarantee: schedules.tenant-role
#[tokio::test(flavor = "multi_thread")]
async fn no_query_runs_as_the_relays_own_role_whatever_tenant_a_schedule_names() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let source = "role = \"{{ tenant }}\"\n[relay.source.schedule.queries.who]\nsql = \"SELECT current_user AS who\"";
    let sink = format!("[relay.sink.http]\nurl = \"{}/reports\"\nbody = '{{{{ who }}}}'", provider.url());
    let text = toml(&database, "relay", None, &jobs(source, &sink));
    now(&app, "forged", "{}", &[("tenant", "relay"), ("query", "who")]).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, provider.count()), (Some(1), 0), "{log}");
    let sql = "SELECT error ->> 'code' FROM outbox.action WHERE status = 'failed'";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, String>(0), "query_role");
}
