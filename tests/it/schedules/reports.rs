//! docs/howto/reports.md, word for word: an email, an SMS and a webhook of a query's rows.

use outbox_testkit::postgres::{password, without_password};
use outbox_testkit::provider::{Answer, Provider};
use outbox_testkit::smtp::Security;
use tokio_postgres::Client;

use super::{clients, having};
use crate::support::gateway::Gateway;
use crate::support::hook::Hook;
use crate::support::pages::{blocks, commands, page};
use crate::support::post::Stage;
use crate::support::tls::Showing;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The text with each of these replaced, which must be there.
fn replaced(text: &str, pairs: &[(&str, String)]) -> String {
    pairs.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in {text}");
        text.replace(from, to)
    })
}

/// The only block of this language.
fn only<'a>(blocks: &[&'a str], mark: &str) -> &'a str {
    let found: Vec<&str> = blocks.iter().copied().filter(|block| block.contains(mark)).collect();
    let [block] = found[..] else { panic!("{mark} is in {} blocks", found.len()) };
    block
}

async fn invoices(owner: &Client) {
    owner
        .batch_execute(
            "INSERT INTO invoices (customer, amount, due, region, paid) VALUES ('Ann & Co', 120.50, '2026-01-02', 'north', false), \
             ('Ben', 7, '2026-01-03', 'north', false), ('Cid', 9, '2026-01-01', 'north', true), ('Dan', 9, '2026-01-01', 'south', false)",
        )
        .await
        .unwrap();
}

// Guarantee: schedules.reports
#[tokio::test(flavor = "multi_thread")]
async fn guide_to_reports_sends_mail_sms_and_webhook() {
    let page = page("reports");
    let stage = Stage::start().await;
    let (server, gateway, hook) = (
        stage.server(Security::StartTls, Showing::Right).await,
        Gateway::start().await,
        Hook::start(&["127.0.0.1"]).await,
    );
    let (folder, role) = (stage.folder.path().display().to_string(), format!("{}_reporting", stage.database.name));
    for role in ["postgres", "relay"] {
        std::fs::write(stage.folder.path().join(role), password(role)).unwrap();
    }
    for (file, text) in [("twilio-token", "hunter2"), ("webhook", SECRET)] {
        std::fs::write(stage.folder.path().join(file), text).unwrap();
    }
    let trust =
        format!("port = {}\nca_file = \"{}\"\nserver = \"127.0.0.1\"", server.port(), stage.authority.file().display());
    let of = |user: &str| {
        let configuration = replaced(
            only(&blocks(&page, "toml"), "[[relay]]"),
            &[
                (
                    "postgresql://relay@127.0.0.1:5432/app?sslmode=verify-full",
                    without_password(&stage.database.url(user)),
                ),
                ("/run/secrets/postgres", format!("{folder}/{user}")),
                ("/run/secrets/smtp", format!("{folder}/password")),
                ("/run/secrets", folder.clone()),
                ("\"reporting\"", format!("\"{role}\"")),
                ("server = \"smtp.example.com\"", trust.clone()),
                ("https://api.twilio.com", gateway.url.clone()),
                (
                    "url = \"https://hooks.example.com",
                    format!("allow = [\"127.0.0.1/32\"]\nurl = \"http://127.0.0.1:{}", hook.port),
                ),
            ],
        );
        format!("{configuration}\n[admin]\nlisten = \"127.0.0.1:0\"\n")
    };
    let sql = blocks(&page, "sql");
    stage.owner.batch_execute(&only(&sql, "CREATE ROLE").replace("reporting", &role)).await.unwrap();
    let up = ["migrate", "up", "--relay-role", "relay", "--app-role", "app"];
    let (code, _, log) = outbox_relay(&of("postgres"), &up).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, out, log) = outbox_relay(&of("relay"), &["check"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let _replica = Process::spawn(&of("relay"), &["run"]);
    let app = stage.database.connect("app").await;
    app.batch_execute(only(&sql, "INSERT INTO outbox.schedule")).await.unwrap();

    let run_now = async || {
        for command in commands(&page) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let (code, out, log) = outbox_relay(&of("relay"), &words).await;
            assert_eq!(code, Some(0), "{command:?}: {out}{log}");
        }
    };
    let all = async |status: &str| {
        let sql = "SELECT count(DISTINCT schedule) FROM outbox.action WHERE manual AND status = $1";
        eventually(PATIENCE * 2, async || stage.owner.query_one(sql, &[&status]).await.unwrap().get::<_, i64>(0) == 3)
            .await;
    };
    run_now().await;
    all("skipped").await;
    assert_eq!((server.received().len(), gateway.asked().len(), hook.asked().len()), (0, 0, 0), "nothing to report");

    invoices(&stage.owner).await;
    run_now().await;
    all("completed").await;
    let mail = server.received().remove(0);
    assert_eq!(
        (mail.header("Subject"), &mail.to[..]),
        (vec!["2 overdue invoices: north"], &["ada@example.org".to_owned()][..])
    );
    let text = "1. Ann & Co owes 120.50 EUR since 2026-01-02\n2. Ben owes 7.00 EUR since 2026-01-03";
    assert_eq!(mail.parts[0].1.trim_end().replace("\r\n", "\n"), text);
    let html = "<ol><li>Ann &amp; Co: 120.50 EUR</li><li>Ben: 7.00 EUR</li></ol>";
    assert_eq!(mail.parts[1].1.trim_end(), html);
    let form = &gateway.asked()[0].form;
    assert_eq!(
        form,
        "To=%2B15551234567&From=%2B15550000000&Body=2%20overdue%20invoices%2C%20the%20oldest%3A%20Ann%20%26%20Co%2C%20120.50%20EUR"
    );
    let hooked = hook.asked().remove(0);
    assert!(hooked.is_signed_with(SECRET) && hooked.path == "/reports/overdue-webhook", "{hooked:?}");
    let rows = r#"[{"amount":120.50,"customer":"Ann & Co","due":"2026-01-02"},{"amount":7.00,"customer":"Ben","due":"2026-01-03"}]"#;
    assert_eq!(hooked.body, format!("{{\"region\": \"north\", \"count\": 2, \"invoices\": {rows}}}"));
}

// Guarantee: schedules.reports
#[tokio::test(flavor = "multi_thread")]
async fn report_with_a_wrong_template_says_what_failed() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let relays: String = [
        ("misspelt", "{{ rows[0].amuont }}"),
        ("looped", "{% for n in amount %}{{ n }}{% endfor %}"),
        ("absent", "{{ note }}"),
    ]
    .map(|(name, body)| {
        format!(
            "[[relay]]\nname = \"{name}\"\n[relay.source.schedule]\nrole = \"reporting\"\n\
                 [relay.source.schedule.queries.one]\nsql = \"SELECT 5 AS amount, NULL AS note\"\n\
                 [relay.sink.http]\nurl = \"{}/\"\nbody = '{body}'\n",
            provider.url()
        )
    })
    .concat();
    let role = format!("{}_reporting", database.name);
    owner.batch_execute(&format!("CREATE ROLE {role} NOLOGIN; GRANT {role} TO relay")).await.unwrap();
    let text = toml(&database, "relay", None, &relays.replace("\"reporting\"", &format!("\"{role}\"")));
    for relay in ["misspelt", "looped", "absent"] {
        let sql = "INSERT INTO outbox.schedule (name, relay, starts_at, query) VALUES ($1, $1, now(), 'one')";
        app.execute(sql, &[&relay]).await.unwrap();
    }
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    for (name, message, hint) in [
        ("misspelt", "Line 1: undefined value", "Correct the name in line 1 of the template"),
        ("looped", "Line 1: invalid operation", "uses a value in a way that the value's type does not allow"),
        ("absent", "It prints NULL; NULL in this row: note", "Add default("),
    ] {
        assert_eq!(having(&owner, name, "failed").await, 1, "{name}: {log}");
        let sql = "SELECT error ->> 'message', error ->> 'hint' FROM outbox.action WHERE schedule = $1";
        let row = owner.query_one(sql, &[&name]).await.unwrap();
        let said: (String, String) = (row.get(0), row.get(1));
        assert!(said.0.ends_with(message) && said.1.contains(hint), "{said:?}");
    }
}
