//! What the clock of PostgreSQL does between two reads.

use std::time::{Duration, Instant, SystemTime};

use super::{run, table, value};

/// How far the machine's clock was set between two instants, by the clock that is never set.
fn step(from: (Instant, SystemTime)) -> Duration {
    let monotonic = from.0.elapsed();
    match from.1.elapsed() {
        Ok(elapsed) => elapsed.abs_diff(monotonic),
        Err(back) => back.duration() + monotonic,
    }
}

/// One session's reads of `clock_timestamp()` never go back, unless the machine's clock does.
#[tokio::test]
async fn clock_of_one_session_never_goes_back() {
    let (_database, owner) = table("id bigint").await;
    run(
        &owner,
        "CREATE FUNCTION steps_back(reads integer) RETURNS bigint LANGUAGE plpgsql AS $$ \
         DECLARE last timestamptz := clock_timestamp(); this timestamptz; steps bigint := 0; BEGIN \
         FOR n IN 1..reads LOOP this := clock_timestamp(); IF this < last THEN steps := steps + 1; END IF; \
         last := this; END LOOP; RETURN steps; END $$",
    )
    .await;
    let begun = (Instant::now(), SystemTime::now());
    let steps: i64 = value(&owner, "SELECT steps_back(200000)").await;
    let set = step(begun);
    assert!(
        steps == 0 || set > Duration::from_millis(1),
        "{steps} steps back, and the machine's clock was set by {set:?}"
    );
}

/// A read that begins after another session's read was answered is not earlier: all sessions have one clock.
#[tokio::test]
async fn clock_of_two_sessions_is_one() {
    let (database, owner) = table("id bigint").await;
    let other = database.connect("app").await;
    let read = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let statements = (owner.prepare(read).await.unwrap(), other.prepare(read).await.unwrap());
    let begun = (Instant::now(), SystemTime::now());
    let (mut last, mut steps) = (0_i64, 0);
    for _ in 0..2_000 {
        for (session, statement) in [(&owner, &statements.0), (&other, &statements.1)] {
            let this = session.query_one(statement, &[]).await.unwrap().get(0);
            steps += i32::from(this < last);
            last = this;
        }
    }
    let set = step(begun);
    assert!(
        steps == 0 || set > Duration::from_millis(1),
        "{steps} steps back, and the machine's clock was set by {set:?}"
    );
}

/// `now()` is when the message came, `clock_timestamp()` is when it is read: the first is never later than the second.
#[tokio::test]
async fn now_is_not_later_than_clock() {
    let (_database, owner) = table("id bigint").await;
    let in_order = "SELECT bool_and(now() <= clock_timestamp() AND now() = transaction_timestamp() \
                    AND now() = CURRENT_TIMESTAMP) FROM generate_series(1, 1000)";
    let begun = (Instant::now(), SystemTime::now());
    let in_order: bool = value(&owner, in_order).await;
    let set = step(begun);
    assert!(in_order || set > Duration::from_millis(1), "now() was later, and the machine's clock was set by {set:?}");
}
