//! A send that takes long holds no lock on the application's row: an UPDATE of the row, and an INSERT that references it,
//! take as long as without the relay.

use std::time::{Duration, Instant};

use outbox_testkit::provider::{Answer, Provider};
use tokio_postgres::Client;

use crate::support::{PATIENCE, Process, database, eventually, toml};

const TABLES: &str = "
    CREATE TABLE public.todos (id bigint PRIMARY KEY, title text NOT NULL, due timestamptz NOT NULL,
        sent boolean NOT NULL DEFAULT false);
    CREATE INDEX ON public.todos (due, id) WHERE NOT sent;
    CREATE TABLE public.comments (todo bigint NOT NULL REFERENCES public.todos, words text NOT NULL);
    GRANT SELECT, UPDATE (sent) ON public.todos TO relay;
    GRANT SELECT, INSERT, UPDATE ON public.todos, public.comments TO app;
    INSERT INTO public.todos VALUES (1, 'a', now() + interval '1 day')";

/// So long the provider takes for its answer.
const SEND: Duration = Duration::from_secs(3);
/// How often each statement is timed.
const ROUNDS: i32 = 50;

/// The slowest of the application's UPDATEs of the row, and of its INSERTs that reference it.
async fn times(app: &Client) -> (Duration, Duration) {
    let (mut update, mut insert) = (Duration::ZERO, Duration::ZERO);
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let sql = "UPDATE public.todos SET title = $1::int::text WHERE id = 1";
        assert_eq!(app.execute(sql, &[&round]).await.unwrap(), 1);
        update = update.max(begun.elapsed());
        let begun = Instant::now();
        app.execute("INSERT INTO public.comments VALUES (1, 'x')", &[]).await.unwrap();
        insert = insert.max(begun.elapsed());
    }
    (update, insert)
}

async fn holds_no_lock(guarantee: &str) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(TABLES).await.unwrap();
    let app = database.connect("app").await;
    let provider = Provider::start(|_| Answer::Late(SEND)).await.unwrap();
    let relay = format!(
        "[[relay]]\nname = \"todos\"\nguarantee = \"{guarantee}\"\n[relay.source.pending]\ntable = \"public.todos\"\n\
         key = [\"id\"]\ndue = \"due\"\nsent = \"sent\"\n[relay.turn]\ndeadline = \"20s\"\n\
         [relay.sink.http]\nurl = \"{}/todos\"\n",
        provider.url()
    );
    times(&app).await; // what is done only once does not count
    let alone = times(&app).await;
    let run = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    owner.batch_execute("UPDATE public.todos SET due = now()").await.unwrap();
    eventually(PATIENCE * 3, async || provider.count() == 1).await;
    let beside = times(&app).await;
    assert_eq!(provider.received()[0].answered_at, None, "the send was still open: {}", run.log());
    println!("{guarantee}: slowest of {ROUNDS}, UPDATE and INSERT: alone {alone:?}, while a row is sent {beside:?}");
    let limit = Duration::from_secs(1);
    assert!(beside.0 < limit && beside.1 < limit, "{beside:?}");
    let sent = "SELECT sent FROM public.todos";
    eventually(PATIENCE * 3, async || owner.query_one(sent, &[]).await.unwrap().get(0)).await;
    eventually(PATIENCE, async || provider.received()[0].took().is_some_and(|took| took >= SEND)).await;
    assert_eq!(provider.count(), 1, "{}", run.log());
}

// Guarantee: pending.locks
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_being_sent_at_least_once_is_not_locked_for_the_application() {
    holds_no_lock("at_least_once").await;
}

// Guarantee: pending.locks
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_being_sent_at_most_once_is_not_locked_for_the_application() {
    holds_no_lock("at_most_once").await;
}
