//! A row that takes longer to be read than a call may is poison, once it has done so alone: the rows after it do not wait for it for ever.

use crate::support::outside::{printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// A value whose JSON is made by a function of the owner's, which sleeps at one of them.
const SLOW: &str = "\
    CREATE TYPE pace AS ENUM ('quick', 'slow');
    CREATE FUNCTION to_json(pace) RETURNS json LANGUAGE plpgsql AS
        $$BEGIN IF $1 = 'slow' THEN PERFORM pg_sleep(60); END IF; RETURN to_json($1::text); END$$;
    CREATE CAST (pace AS json) WITH FUNCTION to_json(pace);
    ALTER TABLE bookings ADD pace pace DEFAULT 'quick'";
const ROWS: &str = "INSERT INTO bookings (pace) VALUES ('quick'), ('slow'), ('quick')";

fn relay(more: &str) -> String {
    stdout_relay("s", more) + "[relay.turn]\ndeadline = \"1s\"\n"
}

/// It was retried for ever, and every row after it waited.
// Guarantee: failures.slow-row
#[tokio::test(flavor = "multi_thread")]
async fn row_that_alone_takes_too_long_becomes_dead_letter() {
    for (more, arrive) in [("", "1 3 2"), ("guarantee = \"at_most_once\"\n", "1 3 2")] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        owner.batch_execute(&format!("{SLOW}; {ROWS}")).await.unwrap();
        let text = toml(&database, "relay", None, &relay(&format!("on_poison = \"dead_letter\"\n{more}")));
        let process = Process::spawn(&text, &["run"]);
        eventually(PATIENCE * 3, || async { printed(&process, "s") == ["1", "3"] }).await;
        let letter = "SELECT message_id || ' ' || (error ->> 'code') || ' ' || state || ' ' || attempts, id::text, payload IS NULL \
                      FROM outbox.dead_letter";
        let found = owner.query_one(letter, &[]).await.unwrap();
        assert_eq!((found.get(0), found.get(2)), ("2 row_too_slow dead 1", true), "{more}");
        // Sent again it is refused while it is as slow, and no other row waits for it; once it is quick it goes out.
        let redrive = ["dead-letter", "redrive", found.get(1), "--yes"];
        assert_eq!(outbox_relay(&text, &redrive).await.0, Some(0));
        let state = async || owner.query_one(letter, &[]).await.unwrap().get::<_, String>(0);
        eventually(PATIENCE * 2, || async { state().await == "2 row_too_slow dead 2" }).await;
        owner.batch_execute("UPDATE bookings SET pace = 'quick'").await.unwrap();
        assert_eq!(outbox_relay(&text, &redrive).await.0, Some(0));
        eventually(PATIENCE, || async { printed(&process, "s").join(" ") == arrive }).await;
    }
}
