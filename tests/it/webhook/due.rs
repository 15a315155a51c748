//! Due work by webhook.

use super::{FIRST, SECOND, Stage};
use crate::support::hook::Hook;
use crate::support::{outbox_relay, toml};

#[tokio::test(flavor = "multi_thread")]
async fn due_rows_are_put_signed_at_one_address_each_and_410_halts_without_a_mark() {
    let (stage, hook) = (Stage::start().await, Hook::start(&["127.0.0.1"]).await);
    stage
        .owner
        .batch_execute(
            "CREATE TABLE todos (\"workspaceId\" text, id text, \"dueDate\" timestamptz, \
             \"delayNotificationSent\" boolean NOT NULL DEFAULT false, PRIMARY KEY (\"workspaceId\", id)); \
             GRANT SELECT, UPDATE (\"delayNotificationSent\") ON todos TO relay; \
             INSERT INTO todos VALUES ('a', '1.5', now() - interval '2 hours'), ('b', '1.5', now() - interval '1 hour'), \
             ('a', 'never', now() + interval '1 hour')",
        )
        .await
        .unwrap();
    let folder = stage.folder.path().display();
    let relay = format!(
        "[[relay]]\nname = \"reminders\"\n[relay.source.pending]\ntable = \"public.todos\"\n\
         key = [\"workspaceId\", \"id\"]\ndue = \"dueDate\"\nsent = \"delayNotificationSent\"\n\
         [relay.sink.webhook]\nmethod = \"PUT\"\nallow = [\"127.0.0.1/32\"]\n\
         url = \"http://127.0.0.1:{}/notifications/delayed-{{{{ id }}}}\"\n\
         secret_files = [\"{folder}/new\", \"{folder}/old\"]\n",
        hook.port
    );
    let text = toml(&stage.database, "relay", None, &relay);
    let marked = async || {
        let sql = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
        stage.owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    hook.answer(410, None);
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert!(code == Some(1) && log.contains("webhook_gone"), "{log}");
    assert_eq!(marked().await, 0);

    hook.answer(200, None);
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "reminders"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let accepted = hook.accepted();
    let mut rows: Vec<&str> = accepted.iter().filter_map(|id| Some(id.rsplit_once('/')?.0)).collect();
    rows.sort_unstable();
    assert_eq!(rows, ["reminders/a/1%2E5", "reminders/b/1%2E5"], "{accepted:?}");
    assert_eq!(marked().await, 2);
    for hooked in hook.asked() {
        assert_eq!((hooked.method.as_str(), hooked.path.as_str()), ("PUT", "/notifications/delayed-1.5"));
        assert_eq!(hooked.header("idempotency-key").replace('.', "%2E"), hooked.header("webhook-id"));
        assert!(hooked.is_signed_with(FIRST) && hooked.is_signed_with(SECOND));
    }
}
