//! Marks of due work in `outbox.sent`.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use super::{TIMES, prune, told};
use crate::support::outside::printed;
use crate::support::{Database, Process, database, outbox_relay, toml};

/// Ten todos, all due; the first nine are open. Their marks are kept in `outbox.sent`.
const TABLE: &str = "
    CREATE TABLE public.todos (space text, id bigint, due timestamptz, state text NOT NULL, PRIMARY KEY (space, id));
    CREATE INDEX ON public.todos (due, space, id);
    INSERT INTO public.todos SELECT 's', i, now() - interval '1 hour', CASE i WHEN 10 THEN 'done' ELSE 'open' END
    FROM generate_series(1, 10) AS i;
    GRANT SELECT ON public.todos TO relay";

fn due(name: &str, table: &str) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\n[relay.source.pending]\ntable = \"{table}\"\nkey = [\"space\", \"id\"]\n\
         due = \"due\"\nwhere = {{ state = \"open\" }}\n[relay.sink.stdout]\n"
    )
}

/// What one `run --once` sends.
async fn sends(text: &str) -> BTreeSet<String> {
    let mut process = Process::spawn(text, &["run", "--once"]);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    printed(&process, "todos").into_iter().collect()
}

async fn marks(owner: &Client) -> BTreeSet<String> {
    let rows =
        owner.query("SELECT array_to_string(key, '/') FROM outbox.sent WHERE relay = 'todos'", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn stage() -> (Database, Client, String) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(TABLE).await.unwrap();
    let text = toml(&database, "relay", None, &format!("{TIMES}{}", due("todos", "public.todos")));
    assert_eq!(sends(&text).await.len(), 9);
    // Of one row nobody knows whether it was sent; another mark is young.
    owner
        .batch_execute(
            "UPDATE outbox.sent SET sent_at = now() - interval '100 days' WHERE key[2] <> '3'; \
             INSERT INTO outbox.claim (relay, key, due_at, state, token, marked, claimed_by) \
             VALUES ('todos', ARRAY['s', '4'], now(), 'unknown', 't', true, 'r')",
        )
        .await
        .unwrap();
    (database, owner, text)
}

// Guarantee: retention.marks
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_stays_while_its_row_is_there_so_that_no_row_is_sent_again_and_goes_when_the_row_is_gone() {
    let (_database, owner, text) = stage().await;
    // 1 is gone; 2 is not open today; 3 is gone, its mark young; 4 is gone, its outcome unknown.
    owner
        .batch_execute("DELETE FROM todos WHERE id IN (1, 3, 4); UPDATE todos SET state = 'done' WHERE id = 2")
        .await
        .unwrap();
    let before = marks(&owner).await;
    let held = vec![(Some(7), "rows of public.todos with these keys, or claims of them")];
    assert_eq!(told(&prune(&text, "--dry-run").await, "sent_marks", "todos"), (1, 0, held));
    assert_eq!(marks(&owner).await, before, "a dry run changes nothing");
    assert_eq!(told(&prune(&text, "--yes").await, "sent_marks", "todos").1, 1);
    let kept = before.into_iter().filter(|key| key != "s/1").collect();
    assert_eq!(marks(&owner).await, kept);
    owner.batch_execute("UPDATE todos SET state = 'open' WHERE id = 2").await.unwrap();
    assert!(sends(&text).await.is_empty(), "what was sent is not due again");
}

// Guarantee: retention.undecidable
#[tokio::test(flavor = "multi_thread")]
async fn marks_that_cannot_be_judged_stay_and_the_reason_is_told() {
    let (database, owner, text) = stage().await;
    owner
        .batch_execute(
            "INSERT INTO outbox.sent (relay, key, due_at, sent_at, sent_by) \
             VALUES ('elsewhere', '{1}', now(), now() - interval '1 year', 'r'); \
             INSERT INTO outbox.sent (relay, key, due_at, sent_at, sent_by) \
             VALUES ('todos', '{99}', now(), now() - interval '1 year', 'r'); \
             CREATE TABLE other (LIKE todos INCLUDING ALL); GRANT SELECT ON other TO relay",
        )
        .await
        .unwrap();
    let before = marks(&owner).await;
    let strange = vec![(Some(1), "the relay is not configured here, or marks in a column now")];
    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "sent_marks", "elsewhere"), (0, 0, strange));
    assert_eq!(told(&document, "sent_marks", "todos").0, 0, "a key of one column is another configuration's");
    // By the empty table's rows every mark would look like one whose row is gone.
    let other = toml(&database, "relay", None, &format!("{TIMES}{}", due("todos", "public.other")));
    let document = prune(&other, "--yes").await;
    let (free, gone, kept) = told(&document, "sent_marks", "todos");
    assert_eq!((free, gone, kept[0].0), (0, 0, None));
    let changes = "this configuration changes what cursor todos belongs to: table public.todos becomes public.other";
    assert_eq!(kept[0].1, changes, "{document}");
    owner.batch_execute("REVOKE SELECT ON todos FROM relay").await.unwrap();
    let document = prune(&text, "--yes").await;
    let (_, _, kept) = told(&document, "sent_marks", "todos");
    assert_eq!(kept.len(), 1);
    assert!(kept[0].1.contains("role relay may not read public.todos"), "{kept:?}");
    owner.batch_execute("DROP TABLE todos").await.unwrap();
    let (code, out, log) = outbox_relay(&text, &["prune", "--dry-run"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.contains("public.todos does not exist"), "{out}");
    assert_eq!(marks(&owner).await, before);
}
