//! A relay that has no topic is compared with what its cursors have recorded that they passed.

use serde_json::json;
use tempfile::TempDir;
use tokio_postgres::Client;

use super::{SWEPT, differences, drain, insert, insert_late, pass_over, verify};
use crate::support::hook::Hook;
use crate::support::{CLOCK, Database, bookings, database, outbox_relay, toml};

mod late;
mod left_out;
mod recorded;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const KEEP: &str = "[audit]\nkeep = \"7d\"\n";

/// A relay `hooks` of `public.bookings` to a webhook's receiver.
struct Sent {
    database: Database,
    owner: Client,
    text: String,
    hook: Hook,
    /// Has the file of the secret.
    _folder: TempDir,
}

impl Sent {
    /// One that has delivered so many rows; `sql` is run before, `more` is added below `[[relay]]`, `sections` behind the relay.
    async fn new(rows: u32, sql: &str, more: &str, sections: &str) -> Self {
        let (database, hook) = (database().await, Hook::start(&["127.0.0.1"]).await);
        let owner = bookings(&database, CLOCK).await;
        owner.batch_execute(sql).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), SECRET).unwrap();
        let relay = format!(
            "[[relay]]\nname = \"hooks\"\nstart = \"beginning\"\n{more}\n[relay.source.stream]\ntable = \"public.bookings\"\n\
             [relay.sink.webhook]\nurl = \"http://127.0.0.1:{}/rows\"\nallow = [\"127.0.0.1/32\"]\nsecret_files = [\"{}/secret\"]\n",
            hook.port,
            folder.path().display()
        );
        let text = toml(&database, "relay", None, &format!("{relay}{sections}"));
        let sent = Self { database, owner, text, hook, _folder: folder };
        sent.deliver(rows).await;
        sent
    }

    async fn plain(rows: u32) -> Self {
        Self::new(rows, "", "", "").await
    }

    /// Delivers so many rows more.
    async fn deliver(&self, rows: u32) {
        insert(&self.owner, rows).await;
        drain(&self.text).await;
    }

    /// A row just before the second one, of the same key; its id.
    async fn insert_late(&self) -> String {
        insert_late(&self.owner).await
    }

    /// All that is recorded is deleted.
    async fn forget(&self) {
        let sql = "UPDATE outbox.cursor SET audit = NULL; DELETE FROM outbox.audit_slice";
        self.owner.batch_execute(sql).await.unwrap();
    }
}

// Guarantee: verify.sinks
#[tokio::test(flavor = "multi_thread")]
async fn relay_of_a_webhook_that_has_delivered_everything_is_equal() {
    let sent = Sent::plain(7).await;
    assert_eq!(sent.hook.accepted().len(), 7);
    insert(&sent.owner, 2).await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(
        (&document["ok"], &document["sink"], &document["topic"]),
        (&true.into(), &"webhook".into(), &json!(null))
    );
    assert_eq!(document["rows"], json!({ "table": 9, "delivered": 7, "topic": null }));
    assert_eq!((&document["slices"], &document["not_yet_due"]), (&1.into(), &2.into()));
    assert_eq!((&document["differences"], &document["not_compared"]), (&json!([]), &json!([])));
    let (code, out, _) = outbox_relay(&sent.text, &["verify", "hooks"]).await;
    assert_eq!(code, Some(0));
    assert!(out.starts_with("hooks: equal\n") && out.contains("slices 1 of what was passed to webhook"), "{out}");
    let noted = sent.owner.query_one("SELECT count(*) FROM outbox.operation", &[]).await.unwrap();
    assert_eq!(noted.get::<_, i64>(0), 0, "it only reads");
}

// Guarantee: verify.sinks
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_passed_and_never_sent_are_named() {
    let sent = Sent::plain(5).await;
    let late = sent.insert_late().await;
    let expected = [format!("not_delivered {late}")];
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, differences(&document)), (Some(3), expected.to_vec()), "{document}{log}");
    // What was recorded has none of the rows that the position is moved over by hand.
    insert(&sent.owner, 3).await;
    pass_over(&sent.owner, "hooks", 9).await;
    let expected: Vec<String> = [late.as_str(), "7", "8", "9"].iter().map(|id| format!("not_delivered {id}")).collect();
    for delivered in [5, 6] {
        let (code, document, log) = verify(&sent.text, &["hooks"]).await;
        assert_eq!((code, differences(&document)), (Some(3), expected.clone()), "{document}{log}");
        assert_eq!(document["rows"]["delivered"], delivered, "{document}");
        assert!(document["notes"].to_string().contains("no turn has recorded that it passed"), "{document}");
        assert_eq!(sent.hook.accepted().len(), delivered);
        if delivered == 5 {
            sent.deliver(1).await;
        }
    }
}

// Guarantee: verify.gone
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_deleted_after_their_delivery_are_not_called_lost() {
    let sent = Sent::plain(6).await;
    sent.owner.batch_execute("DELETE FROM bookings WHERE id IN (2, 3)").await.unwrap();
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), ["not_in_table 2", "not_in_table 3"]);
    assert_eq!(document["counts"], json!({ "not_in_table": 2 }));
    // One that is dated otherwise was delivered, and is there.
    let dated = "DELETE FROM bookings WHERE id = 1; UPDATE bookings SET created_at = created_at + interval '1 microsecond' WHERE id = 4";
    sent.owner.batch_execute(dated).await.unwrap();
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), ["not_in_table 1", "not_in_table 2", "not_in_table 3"]);
    sent.owner.batch_execute("DELETE FROM bookings").await.unwrap();
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["counts"]), (Some(3), &json!({ "not_in_table": 6 })), "{document}{log}");
}

// Guarantee: verify.gone
#[tokio::test(flavor = "multi_thread")]
async fn slice_in_which_more_ids_differ_than_can_be_named_is_said_by_its_places() {
    let sent = Sent::plain(30).await;
    sent.owner.batch_execute("DELETE FROM bookings WHERE id > 10 AND id <= 22").await.unwrap();
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["differences_capped"]), (Some(3), &true.into()), "{document}{log}");
    assert_eq!(differences(&document), Vec::<String>::new());
    let unclear = &document["unclear"][0];
    assert_eq!((&unclear["table"], &unclear["passed"], &unclear["cursor"]), (&18.into(), &30.into(), &"hooks".into()));
    assert_eq!(unclear["up_to"]["id"], "30");
    let (_, out, _) = outbox_relay(&sent.text, &["verify", "hooks"]).await;
    assert!(out.contains("more than nine ids differ of hooks") && out.contains("18 rows, 30 were passed"), "{out}");
}

// Guarantee: verify.sinks
#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_texts_are_compared_and_those_that_are_gone_are_counted() {
    let texts = "ALTER TABLE bookings ALTER COLUMN id DROP IDENTITY; ALTER TABLE bookings ALTER COLUMN id TYPE text; \
                 ALTER TABLE bookings ALTER COLUMN id SET DEFAULT gen_random_uuid()::text";
    let sent = Sent::new(6, texts, "", "").await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &6.into()), "{document}{log}");
    let gone = "DELETE FROM bookings WHERE id IN (SELECT id FROM bookings ORDER BY created_at, id LIMIT 2)";
    sent.owner.batch_execute(gone).await.unwrap();
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["counts"]), (Some(3), &json!({ "not_in_table": 2 })), "{document}{log}");
    assert_eq!((&document["differences"], &document["differences_capped"]), (&json!([]), &true.into()));
    assert!(document["notes"].to_string().contains("2 ids that are not in the table cannot be named"), "{document}");
}
