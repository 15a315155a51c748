//! A policy of the read model's table: it hides no row from the statement, but halts the relay and says what to do.

use super::relay;
use crate::support::outside::{fixed, halted};
use crate::support::{CLOCK, PATIENCE, Replica, bookings, config, database, eventually, outbox_relay, toml};

/// With row security on, an upsert would not see the rows that the policy hides, and an update would change none, without an error.
// Guarantee: read-models.check
#[tokio::test(flavor = "multi_thread")]
async fn policy_on_a_read_model_halts_its_relay_with_what_to_do_and_no_row_is_passed() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; CREATE TABLE app.total (rows bigint); \
             INSERT INTO app.total VALUES (0); GRANT SELECT, UPDATE ON app.total TO relay",
        )
        .await
        .unwrap();
    let relays = relay("total", "", "UPDATE app.total SET rows = rows + length($1)", r#""customer""#, "");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    let total = async || owner.query_one("SELECT rows FROM app.total", &[]).await.unwrap().get::<_, i64>(0);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, async || total().await == 1).await;
    owner
        .batch_execute(
            "CREATE POLICY none ON app.total USING (false); ALTER TABLE app.total ENABLE ROW LEVEL SECURITY; \
             INSERT INTO bookings DEFAULT VALUES",
        )
        .await
        .unwrap();
    let (_, error) = halted(&owner, "total").await;
    assert_eq!(error["code"], "sql_42501", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("BYPASSRLS"), "{error}");
    owner.batch_execute("ALTER TABLE app.total DISABLE ROW LEVEL SECURITY").await.unwrap();
    let text = toml(&database, "relay", None, &relays);
    let (code, out, log) = outbox_relay(&text, &["cursor", "resume", "total"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    fixed(&owner, "total").await;
    eventually(PATIENCE, async || total().await == 2).await;
    replica.stop().await;
}
