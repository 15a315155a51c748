//! What `check` finds of the roles that queries run as is what their actions meet.

use outbox_testkit::provider::{Answer, Provider};

use super::clients;
use crate::support::outside::json;
use crate::support::{database, outbox_relay, toml};

// Guarantee: schedules.role-checked
#[tokio::test(flavor = "multi_thread")]
async fn check_names_roles_of_tenants_whose_queries_would_fail() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let name = &database.name;
    let [good, stranger, bare, none] = ["good", "stranger", "bare", "none"].map(|role| format!("{name}_{role}"));
    let roles = format!(
        "CREATE ROLE {good}; CREATE ROLE {stranger}; CREATE ROLE {bare}; GRANT {good}, {bare} TO relay; \
         REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC; GRANT TEMPORARY ON DATABASE {name} TO {good}, {stranger}"
    );
    owner.batch_execute(&roles).await.unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(
        &database,
        "relay",
        None,
        &format!(
            "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\nrole = \"{{{{ tenant }}}}\"\n[relay.source.schedule.queries.who]\n\
             sql = \"SELECT current_user AS who\"\n[relay.sink.http]\nurl = \"{}/reports\"\nbody = '{{{{ who }}}}'\n",
            provider.url()
        ),
    );
    for tenant in [&good, &stranger, &bare, &none, &"relay".to_owned()] {
        let sql = "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, query) VALUES ('once', $1, 'jobs', now(), 'who')";
        app.execute(sql, &[tenant]).await.unwrap();
    }
    let (code, check, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(0), "other tenants' queries run: {check}");
    let document = json(&check);
    let all = document["findings"].as_array().unwrap().iter().filter(|finding| finding["code"] == "query_role");
    let found: Vec<(&str, Option<&str>)> =
        all.map(|finding| (finding["message"].as_str().unwrap(), finding["fix_sql"].as_str())).collect();
    let cannot = |role: &str, why: &str| format!("queries of schedules cannot run as role {role}: {why}");
    let [bare_why, none_why, own_why, stranger_why] = [
        cannot(&bare, "it may not create temporary objects"),
        cannot(&none, "there is no such role"),
        cannot("relay", "it is the relay's own"),
        cannot(&stranger, "relay may not become it"),
    ];
    let temporary = format!("GRANT TEMPORARY ON DATABASE \"{name}\" TO \"{bare}\";");
    let member = format!("GRANT \"{stranger}\" TO \"relay\";");
    let wanted: [(&str, Option<&str>); 4] =
        [(&own_why, None), (&bare_why, Some(&temporary)), (&none_why, None), (&stranger_why, Some(&member))];
    let mut sorted = found.clone();
    sorted.sort_unstable();
    let mut expected = wanted.to_vec();
    expected.sort_unstable();
    assert_eq!(sorted, expected);

    outbox_relay(&text, &["run", "--once"]).await;
    let sql = "SELECT tenant FROM outbox.action WHERE error ->> 'code' = 'query_role' ORDER BY tenant";
    let failed: Vec<String> = owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let mut unfit = vec![bare, none, "relay".to_owned(), stranger];
    unfit.sort_unstable();
    assert_eq!((failed, provider.count()), (unfit, 1));
}

/// Since version 16 a membership can be without the right to become the role, and a plain GRANT changes nothing about it.
// Guarantee: schedules.role-checked
#[tokio::test(flavor = "multi_thread")]
async fn grant_that_check_prints_is_enough() {
    let database = database().await;
    let (owner, _) = clients(&database).await;
    let role = format!("{}_reports", database.name);
    let version: i32 =
        owner.query_one("SELECT current_setting('server_version_num')::integer", &[]).await.unwrap().get(0);
    let membership = if version >= 160_000 { format!("GRANT {role} TO relay WITH SET FALSE") } else { String::new() };
    owner.batch_execute(&format!("CREATE ROLE {role}; {membership}")).await.unwrap();
    let relay = format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\nrole = \"{role}\"\n[relay.source.schedule.queries.who]\n\
         sql = \"SELECT current_user AS who\"\n[relay.sink.stdout]\n"
    );
    let text = toml(&database, "relay", None, &relay);
    let fixes = async || {
        let document = json(&outbox_relay(&text, &["check", "-o", "json"]).await.1);
        let found = document["findings"].as_array().unwrap().iter().filter(|finding| finding["code"] == "query_role");
        found.map(|finding| finding["fix_sql"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let printed = fixes().await;
    assert_eq!(printed.len(), 1, "{printed:?}");
    owner.batch_execute(&printed[0]).await.unwrap();
    assert_eq!(fixes().await, Vec::<String>::new());
}
