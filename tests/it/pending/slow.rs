//! A due row that takes too long to be read is put off; those after it do not wait for it.

use super::{PATIENCE, count, database, eventually, tables};
use crate::support::receiver::Receiver;
use crate::support::{Process, toml};

/// A value whose text is made by a function of the owner's, which sleeps at one of them.
const SLOW: &str = "\
    CREATE TYPE pace AS ENUM ('quick', 'slow');
    CREATE FUNCTION pace_text(pace) RETURNS text LANGUAGE plpgsql AS
        $$BEGIN IF $1 = 'slow' THEN PERFORM pg_sleep(60); END IF; RETURN enum_out($1)::text; END$$;
    CREATE CAST (pace AS text) WITH FUNCTION pace_text(pace);
    CREATE TABLE job (id text PRIMARY KEY, due timestamptz, pace pace, sent boolean NOT NULL DEFAULT false);
    CREATE INDEX ON job (due, id) WHERE NOT sent;
    GRANT SELECT, UPDATE (sent) ON job TO relay;
    INSERT INTO job SELECT n::text, now() - interval '1 hour' + n * interval '1 s', CASE n WHEN 2 THEN 'slow' ELSE 'quick' END::pace
    FROM generate_series(1, 5) AS n";

/// Every claim read it, and no row after it was ever sent.
// Guarantee: pending.slow-row
#[tokio::test(flavor = "multi_thread")]
async fn due_row_that_takes_too_long_is_put_off_and_others_flow() {
    for guarantee in ["", "guarantee = \"at_most_once\"\n"] {
        let (database, receiver) = (database().await, Receiver::start());
        let owner = tables(&database).await;
        owner.batch_execute(SLOW).await.unwrap();
        let relay = format!(
            "[[relay]]\nname = \"job\"\n{guarantee}[relay.source.pending]\ntable = \"public.job\"\nkey = [\"id\"]\ndue = \"due\"\n\
             sent = \"sent\"\n[relay.turn]\ndeadline = \"1s\"\n[relay.sink.http]\nurl = \"{}/rows\"\nbody = \"{{{{ pace }}}}\"\n",
            receiver.url()
        );
        let _process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
        eventually(PATIENCE * 6, async || count(&owner, "SELECT count(*) FROM job WHERE sent").await == 4).await;
        let waits = "SELECT count(*) FROM outbox.claim WHERE relay = 'job' AND key = '{2}' AND state = 'waiting' \
                     AND error ->> 'hint' LIKE 'PostgreSQL has not read this row%'";
        assert_eq!(count(&owner, waits).await, 1, "{guarantee}");
        owner.batch_execute("UPDATE job SET pace = 'quick' WHERE id = '2'").await.unwrap();
        eventually(PATIENCE * 6, async || count(&owner, "SELECT count(*) FROM job WHERE sent").await == 5).await;
        // Under at_most_once a row is marked before it is sent.
        let accepted = || {
            let mut accepted = receiver.accepted("job");
            accepted.sort();
            accepted
        };
        eventually(PATIENCE, async || accepted().len() >= 5).await;
        assert_eq!(accepted(), ["1", "2", "3", "4", "5"], "{guarantee}: each once");
    }
}
