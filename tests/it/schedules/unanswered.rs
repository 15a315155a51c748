//! A statement whose commit is not answered: it has taken place, or it has not, and what is recorded says which.

use super::{clients, having};
use crate::support::outside::line;
use crate::support::proxy::{Cut, Proxy};
use crate::support::relays::toml_of;
use crate::support::{PATIENCE, Process, database, eventually};

/// The statement's commit is cut; it takes place once, and its action has been completed. A slow commit is still in progress when
/// its session has ended for the relay.
async fn takes_place_once(cut: Cut, slow: bool) {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner
        .batch_execute(
            "CREATE TABLE public.done (schedule text); CREATE TABLE public.gate (); GRANT INSERT ON public.done TO relay; \
             GRANT SELECT ON public.gate TO relay; \
             CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN WHILE (SELECT count(*) < TG_ARGV[0]::int FROM public.gate) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NEW; END'; \
             CREATE TRIGGER wait BEFORE INSERT ON public.done FOR EACH ROW EXECUTE FUNCTION public.wait(1); \
             CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON outbox.action DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW WHEN (NEW.status = 'completed') EXECUTE FUNCTION public.wait(2)",
        )
        .await
        .unwrap();
    let direct = database.postgres.port();
    let proxy = Proxy::start_at(direct, cut, b"COMMIT\0").await;
    let url = database.url("relay").replace(&format!(":{direct}/"), &format!(":{}/", proxy.port));
    let relay = "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.sink.sql]\n\
                 statement = \"INSERT INTO public.done VALUES ($1)\"\nparameters = [\"schedule\"]";
    let text = toml_of(url.trim_end_matches("?sslmode=disable"), None, relay);
    // What is unknown is not done again.
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, on_interrupted) \
         VALUES ('once', 'jobs', clock_timestamp(), 'fail')",
    )
    .await
    .unwrap();
    let process = Process::spawn(&text, &["run"]);
    line(&process, "relay ready").await;
    let waits =
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    eventually(PATIENCE, async || owner.query_one(waits, &[]).await.unwrap().get(0)).await;
    proxy.arm();
    let open = "INSERT INTO public.gate DEFAULT VALUES";
    owner.batch_execute(if slow { open.to_owned() } else { format!("{open}; {open}") }.as_str()).await.unwrap();
    eventually(PATIENCE, async || proxy.cuts() == 1).await;
    if slow {
        // Time enough to record that it failed, were its row not locked.
        let later = "SELECT updated_at + interval '5 seconds' < clock_timestamp() FROM outbox.action";
        eventually(PATIENCE, async || owner.query_one(later, &[]).await.unwrap().get(0)).await;
        assert_eq!(having(&owner, "once", "running").await, 1, "{}", process.log());
        owner.batch_execute(open).await.unwrap();
    }
    eventually(PATIENCE, async || having(&owner, "once", "completed").await == 1).await;
    let done = "SELECT count(*) FROM public.done";
    assert_eq!(owner.query_one(done, &[]).await.unwrap().get::<_, i64>(0), 1, "{}", process.log());
    if cut == Cut::Before {
        assert!(process.log().contains("action failed"), "{}", process.log());
    } else {
        eventually(PATIENCE, async || process.log().contains("recorded by a commit that was not answered")).await;
    }
}

// Guarantee: schedules.one-transaction
#[tokio::test(flavor = "multi_thread")]
async fn statement_whose_commit_never_reached_the_server_is_executed_again() {
    takes_place_once(Cut::Before, false).await;
}

// Guarantee: schedules.one-transaction
#[tokio::test(flavor = "multi_thread")]
async fn statement_whose_commit_was_not_answered_is_not_executed_again() {
    takes_place_once(Cut::After, false).await;
}

// Guarantee: schedules.one-transaction
#[tokio::test(flavor = "multi_thread")]
async fn statement_whose_commit_is_still_in_progress_is_not_executed_again() {
    takes_place_once(Cut::After, true).await;
}
