//! The consumers of docs/howto/consumers.md, word for word: each row has its effect once, whoever is killed.

mod program;
mod sql;
mod topic;

use outbox_testkit::postgres::password;
use program::{Language, Program};
pub use program::{java, kit};
use tokio_postgres::Client;
use topic::{LATE, REDRIVEN, Topic, count, servers};

use crate::support::pages::{blocks, page};
use crate::support::{PATIENCE, eventually, unique};

/// Makes a consumer wait in the middle of its transaction for a row whose id the test has locked.
const GATE: &str = "
    CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock_shared(12, NEW.booking::integer); RETURN NEW; END';
    CREATE TRIGGER gate BEFORE INSERT ON invoice FOR EACH ROW EXECUTE FUNCTION public.gate()";
/// A row that has no copy in the topic, which would heal its loss.
const FIRST: i64 = 20;
const WAITS: &str = "FROM pg_locks WHERE locktype = 'advisory' AND classid = 12 AND NOT granted \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// What a consumer has made of a topic.
#[derive(Debug, Default, PartialEq, Eq)]
struct Effect {
    missing: i64,
    twice: i64,
    /// Invoices that are no row's, or not as the row is.
    wrong: i64,
    out_of_place: Vec<i64>,
}

impl Effect {
    async fn of(topic: &Topic) -> Self {
        let same = "i.booking = b.id AND i.customer = b.customer AND i.booked_at = b.created_at";
        let sql = format!(
            "SELECT (SELECT count(*) FROM bookings AS b WHERE NOT EXISTS (SELECT FROM invoice AS i WHERE {same})), \
                    (SELECT count(*) - count(DISTINCT booking) FROM invoice), \
                    (SELECT count(*) FROM invoice AS i WHERE NOT EXISTS (SELECT FROM bookings AS b WHERE {same})), \
                    ARRAY(SELECT booking FROM invoice WHERE out_of_place ORDER BY booking)"
        );
        let row = topic.owner.query_one(&sql, &[]).await.unwrap();
        Self { missing: row.get(0), twice: row.get(1), wrong: row.get(2), out_of_place: row.get(3) }
    }

    /// Every row once.
    fn exact() -> Self {
        Self { out_of_place: vec![REDRIVEN, LATE], ..Self::default() }
    }
}

/// The tables of the page.
async fn tables(owner: &Client) {
    let page = page("consumers");
    let sql = blocks(&page, "sql").into_iter().find(|sql| sql.contains("CREATE TABLE processed_message"));
    owner.batch_execute(sql.expect("the tables")).await.unwrap();
}

/// A topic, with the tables of its consumers and a gate beside the source.
async fn topic() -> Topic {
    let topic = Topic::start().await;
    tables(&topic.owner).await;
    topic.owner.batch_execute(GATE).await.unwrap();
    topic
}

/// A consumer of the page in a group of its own.
async fn consumer(topic: &Topic, language: Language, edit: impl FnOnce(&str) -> String) -> Program {
    let url = topic.database.url("postgres");
    let jdbc = url
        .replace(&format!("postgresql://postgres:{}@", password("postgres")), "jdbc:postgresql://")
        .replace('?', &format!("?user=postgres&password={}&", password("postgres")));
    let environment = [
        ("CONSUMER", unique("invoices")),
        ("INSTANCE", "first".into()),
        ("KAFKA", servers().await),
        ("TOPIC", topic.name.clone()),
        ("DATABASE_URL", url),
        ("JDBC_URL", jdbc),
    ];
    Program::new(language, edit, environment.into())
}

/// Lets it come to the topic's end, and answers what it has made of it.
async fn finish(topic: &Topic, program: &Program) -> Effect {
    let run = program.start();
    let last = topic.last().iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT count(DISTINCT booking) = {} FROM invoice WHERE booking IN ({last})", topic.last().len());
    reached(topic, program, &sql).await;
    run.kill().await;
    Effect::of(topic).await
}

/// Waits for a state that a consumer brings about, for less than a session of its group lasts: a new run need not wait for
/// the end of the one before it.
async fn reached(topic: &Topic, program: &Program, sql: &str) {
    let deadline = tokio::time::Instant::now() + PATIENCE * 3;
    while !topic.owner.query_one(sql, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(tokio::time::Instant::now() < deadline, "{sql}\n{}", program.log());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// How a consumer is ended in the middle of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    /// Its session in the database is; the program then ends by itself.
    Cut,
}

/// Runs a consumer until it is between mark and effect of this row, and ends it there: neither remains.
async fn ended_within(topic: &Topic, program: &Program, row: i64, end: End) {
    let owner = &topic.owner;
    owner.batch_execute(&format!("SELECT pg_advisory_lock(12, {row})")).await.unwrap();
    let run = program.start();
    reached(topic, program, &format!("SELECT count(*) = 1 {WAITS}")).await;
    // A killed one's session does not look at its connection while it waits for the lock.
    let sessions = format!("SELECT count(pg_terminate_backend(pid)) {WAITS}");
    let cut = eventually(PATIENCE, async || count(owner, &sessions).await == 0);
    match end {
        End::Killed => {
            run.kill().await;
            cut.await;
        }
        End::Cut => {
            cut.await;
            let status = run.ended().await;
            assert!(!status.success(), "{status}");
        }
    }
    owner.batch_execute(&format!("SELECT pg_advisory_unlock(12, {row})")).await.unwrap();
    let left = format!(
        "SELECT (SELECT count(*) FROM processed_message WHERE id = '{row}') + (SELECT count(*) FROM invoice WHERE booking = {row})"
    );
    assert_eq!(count(owner, &left).await, 0, "mark and effect are one");
}

/// It is killed in the middle of a row's transaction, its session is cut in another's, it is killed again while it works, and
/// then comes to the end. Answers how many copies it met beyond those of the topic itself.
async fn once_whoever_is_killed(language: Language) -> usize {
    let topic = topic().await;
    let program = consumer(&topic, language, str::to_owned).await;
    ended_within(&topic, &program, FIRST, End::Killed).await;
    ended_within(&topic, &program, 240, End::Cut).await;
    let done = count(&topic.owner, "SELECT count(*) FROM processed_message").await;
    let run = program.start();
    reached(&topic, &program, &format!("SELECT count(*) > {done} FROM processed_message")).await;
    run.kill().await;
    assert_eq!(finish(&topic, &program).await, Effect::exact());
    let (records, copies, again) = (topic.records.len(), topic.copies(), program.again());
    println!("{language:?}: {records} records, {copies} copies in the topic, {again} met");
    again.checked_sub(copies).expect("every copy was met")
}

// Guarantee: consumers.programs
#[tokio::test(flavor = "multi_thread")]
async fn the_java_consumer_of_the_page_has_each_rows_effect_once_whoever_is_killed() {
    // It commits its offsets after each poll, so rows before a kill come again.
    assert!(once_whoever_is_killed(Language::Java).await > 0);
}

// Guarantee: consumers.programs
#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_consumer_of_the_page_has_each_rows_effect_once_whoever_is_killed() {
    // It commits its offset after each row: a kill rarely falls in between.
    once_whoever_is_killed(Language::TypeScript).await;
}

/// The program with one line for another.
fn with(line: &'static str, other: &'static str) -> impl FnOnce(&str) -> String {
    move |source| {
        assert_eq!(source.matches(line).count(), 1, "{line}");
        source.replace(line, other)
    }
}

// Guarantee: consumers.programs (negative control)
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_does_not_ask_its_memory_does_rows_twice_and_one_that_commits_its_offsets_first_loses_some() {
    let topic = topic().await;
    let forgetful = with("mark.rowCount === 1", "mark.rowCount !== null");
    let program = consumer(&topic, Language::TypeScript, forgetful).await;
    let effect = finish(&topic, &program).await;
    assert!(effect.missing == 0 && effect.twice > 0, "{effect:?}");

    topic.owner.batch_execute("TRUNCATE invoice, processed_message").await.unwrap();
    let line = "  const fresh = await processOnce(message)\n";
    let hasty = with(line, "  await message.commit()\n  const fresh = await processOnce(message)\n");
    let program = consumer(&topic, Language::TypeScript, hasty).await;
    ended_within(&topic, &program, FIRST, End::Killed).await;
    let effect = finish(&topic, &program).await;
    assert!(effect.missing == 1 && effect.twice == 0, "{effect:?}");
}
