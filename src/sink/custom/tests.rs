//! What the engine takes from a sink of one's own, and what it does not believe.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde::Deserialize;

use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;
use crate::sink::{Class, Flow, Mode, Published};

/// Answers by a script, and keeps what it was given.
struct Scripted {
    description: Description,
    answers: Mutex<VecDeque<Answer>>,
    seen: Arc<Mutex<Vec<Vec<String>>>>,
}

enum Answer {
    Ends(Result<(), Stopped>),
    Never,
}

#[async_trait]
impl CustomSink for Scripted {
    fn description(&self) -> Description {
        self.description.clone()
    }

    async fn check(&self) -> Result<(), Failure> {
        match self.description.target.as_str() {
            "panics" => panic!("a mistake"),
            "silent" => std::future::pending().await,
            _ => Ok(()),
        }
    }

    async fn publish(&self, messages: &[Delivery<'_>], _deadline: Instant) -> Result<(), Stopped> {
        self.seen.lock().expect("unpoisoned").push(messages.iter().map(Delivery::idempotency_key).collect());
        let answer = self.answers.lock().expect("unpoisoned").pop_front();
        match answer {
            Some(Answer::Ends(answer)) => answer,
            Some(Answer::Never) => std::future::pending().await,
            None => Ok(()),
        }
    }
}

fn scripted(
    description: Description,
    answers: impl IntoIterator<Item = Answer>,
) -> (Adapter, Arc<Mutex<Vec<Vec<String>>>>) {
    let (answers, seen) = (Mutex::new(answers.into_iter().collect()), Arc::default());
    let sink = Scripted { description, answers, seen: Arc::clone(&seen) };
    let made = Mutex::new(Some(sink));
    let mut kinds = Kinds::default();
    kinds.add("scripted", move |_| Ok(made.lock().expect("unpoisoned").take().expect("made once")));
    let config = kinds.make("scripted", Table(toml::Table::new())).expect("registered").expect("made");
    (Adapter::new(&config, "relay"), seen)
}

fn batch(ids: &[&str]) -> Batch {
    let mut batch = Batch::new(1);
    for id in ids {
        batch.push(Timestamp::from_pg_micros(1), id, [Some(&b"{}"[..])]);
    }
    batch
}

fn failure(class: Class, code: &str) -> Failure {
    Failure::of(class, code, "It was not accepted", "See why.")
}

async fn publish(sink: &Adapter, mode: Mode) -> Published {
    let mut publication = sink.begin(mode);
    publication.push(&batch(&["1", "2", "3"])).await;
    publication.finish()
}

#[tokio::test]
async fn batches_go_as_a_whole_and_one_by_one_means_one() {
    for (description, alone, expected) in [
        (Description::in_batches("t"), false, vec![vec!["relay/1", "relay/2", "relay/3"]]),
        (Description::in_batches("t"), true, vec![vec!["relay/1"], vec!["relay/2"], vec!["relay/3"]]),
        (Description::one_by_one("t"), false, vec![vec!["relay/1"], vec!["relay/2"], vec!["relay/3"]]),
    ] {
        let (sink, seen) = scripted(description, []);
        let published = publish(&sink, Mode { alone, ..Mode::default() }).await;
        assert_eq!(published, Published { acknowledged: 3, stopped: None, suspects: 1 });
        assert_eq!(*seen.lock().expect("unpoisoned"), expected);
    }
}

#[tokio::test]
async fn a_refusal_says_how_far_it_came_and_is_no_other_sinks() {
    let refused = Stopped::after(1, failure(Class::Poison, "sql_57014")).among(9);
    let (sink, seen) = scripted(Description::in_batches("t"), [Answer::Ends(Err(refused))]);
    let mut publication = sink.begin(Mode::default());
    assert_eq!(publication.push(&batch(&["1", "2", "3"])).await, Flow::Stop);
    assert_eq!(publication.push(&batch(&["4"])).await, Flow::Stop);
    let published = publication.finish();
    assert_eq!((published.acknowledged, published.suspects), (1, 2), "there are no more than two behind it");
    let stopped = published.stopped.expect("refused");
    assert_eq!((stopped.code.as_str(), stopped.is_too_slow()), ("custom_sql_57014", false));
    assert_eq!(seen.lock().expect("unpoisoned").len(), 1);
}

#[tokio::test]
async fn texts_of_a_sink_fit_a_column_and_its_pauses_are_bounded() {
    let wild = Failure {
        retry_after: Some(Duration::from_secs(1 << 40)),
        ..Failure::of(Class::Retry, "Näh, \0!", format!("a\0b{}", "x".repeat(9_000)), "")
    };
    let (sink, _) = scripted(Description::in_batches("t"), [Answer::Ends(Err(wild.in_doubt().into()))]);
    let stopped = publish(&sink, Mode::default()).await.stopped.expect("stopped");
    assert_eq!(stopped.code, "custom_n_h____");
    assert!(stopped.message.starts_with("a bx") && stopped.message.len() <= 1024);
    assert!(stopped.retry_after.is_some_and(|pause| pause <= Duration::from_secs(900)));
    assert!(stopped.ambiguous && stopped.is_outage());
}

#[tokio::test]
async fn a_sink_that_contradicts_itself_is_not_believed() {
    for acknowledged in [3, 4, usize::MAX] {
        let answer = Stopped::after(acknowledged, failure(Class::Poison, "x"));
        let (sink, _) = scripted(Description::in_batches("t"), [Answer::Ends(Err(answer))]);
        let published = publish(&sink, Mode::default()).await;
        let stopped = published.stopped.expect("stopped");
        assert_eq!((published.acknowledged, published.suspects), (0, 1));
        assert_eq!((stopped.class, stopped.ambiguous), (Class::Fatal, true));
        assert_eq!(stopped.code, "custom_contradiction");
    }
}

#[tokio::test]
async fn what_is_dropped_in_the_midst_is_in_doubt() {
    let (sink, _) = scripted(Description::one_by_one("t"), [Answer::Ends(Ok(())), Answer::Never]);
    let mut publication = sink.begin(Mode::default());
    let batch = batch(&["1", "2", "3"]);
    assert!(tokio::time::timeout(Duration::from_millis(20), publication.push(&batch)).await.is_err());
    assert_eq!(publication.finish(), Published { acknowledged: 1, stopped: Some(Failure::deadline()), suspects: 1 });
}

#[tokio::test]
async fn nothing_is_handed_over_too_early_or_too_late() {
    let (sink, seen) = scripted(Description::in_batches("t").at_most_every(Duration::from_secs(60)), []);
    assert_eq!(sink.min_interval(), Some(Duration::from_secs(60)));
    let published = publish(&sink, Mode::default()).await;
    assert_eq!(published, Published { acknowledged: 1, stopped: None, suspects: 1 });
    let over = publish(&sink, Mode { until: Some(Instant::now()), ..Mode::default() }).await;
    assert_eq!(over, Published { acknowledged: 0, stopped: None, suspects: 1 });
    assert_eq!(seen.lock().expect("unpoisoned").len(), 1);
}

#[tokio::test]
async fn a_pinned_message_comes_back_and_only_for_the_fields_it_was_read_for() {
    let fields = [Field::Text("a".to_owned()), Field::Payload("b".to_owned())];
    let (sink, seen) = scripted(Description::one_by_one("t").reading(fields), []);
    let mut due = Batch::of_due_rows(2);
    due.push(Timestamp::from_pg_micros(0), "7", [None, Some(&b"\xff\0"[..])]);
    let (pinned, mut handed_over) = (sink.pin(&due.message(0)), false);
    let back = pinned::unpin(sink.fields(), "7", &pinned).expect("is a message");
    let message = back.message(0);
    assert_eq!((message.value(0), message.value(1)), (None, Some(&b"\xff\0"[..])));
    sink.deliver("7", &pinned, Duration::from_secs(9), &mut handed_over).await.expect("accepted");
    assert!(handed_over);
    assert_eq!(*seen.lock().expect("unpoisoned"), [["relay/7/2000-01-01T00:00:00.000000Z"]]);
    let others = [Field::Text("a".to_owned()), Field::Text("b".to_owned())];
    for (fields, pinned) in [(&others[..], &pinned[..]), (&others[..1], &pinned), (sink.fields(), b"{}")] {
        assert_eq!(pinned::unpin(fields, "7", pinned).expect_err("refused").class, Class::Poison);
    }
}

#[tokio::test]
async fn a_request_that_is_not_answered_in_time_is_in_doubt_and_one_that_never_left_is_not() {
    let (sink, _) = scripted(Description::one_by_one("t"), [Answer::Never]);
    let (pinned, mut handed_over) = (sink.pin(&batch(&["1"]).message(0)), false);
    let late = sink.deliver("1", &pinned, Duration::from_millis(20), &mut handed_over).await.expect_err("late");
    assert!(late.ambiguous && handed_over);
    let never = sink.deliver("1", &pinned, Duration::ZERO, &mut handed_over).await.expect_err("no time");
    assert!(!never.ambiguous);
}

#[tokio::test]
async fn a_check_that_panics_or_does_not_answer_is_a_finding() {
    for (target, code) in [("panics", "custom_panicked"), ("silent", "custom_no_answer")] {
        let (sink, _) = scripted(Description::in_batches(target), []);
        let failure = sink.check(Duration::from_millis(20)).await.expect_err(target);
        assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, code));
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[expect(dead_code, reason = "only its type counts")]
    path: String,
    #[serde(default)]
    #[expect(dead_code, reason = "only its type counts")]
    retries: u8,
    #[serde(default)]
    #[expect(dead_code, reason = "only its type counts")]
    tls: Option<Tls>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    #[expect(dead_code, reason = "only its type counts")]
    mode: Switch,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Switch {
    On,
    Off,
}

#[test]
fn a_wrong_key_is_named_and_its_value_is_not() {
    for (text, key, problem) in [
        ("", "", "missing field `path`"),
        ("pth = 'hunter2'", "pth", "unknown field `pth`, expected one of `path`, `retries`, `tls`"),
        ("path = 1", "path", "invalid type: integer ***, expected a string"),
        ("path = 'a'\nretries = 'hunter2'", "retries", "invalid type: string ***, expected u8"),
        ("path = 'a'\ntls = { mode = 'hunter2' }", "tls.mode", "unknown variant ***, expected `on` or `off`"),
        ("path = 'a'\ntls = { moda = 'on' }", "tls.moda", "unknown field `moda`, expected `mode`"),
    ] {
        let error = Table(text.parse().expect("TOML")).parse::<Settings>().expect_err(text);
        assert_eq!((error.key.as_str(), error.problem.as_str()), (key, problem));
    }
    let table = Table("path = 'hunter2'".parse().expect("TOML"));
    assert!(table.parse::<Settings>().is_ok() && !format!("{table:?}").contains("hunter2"));
}

#[test]
fn a_kind_has_a_name_that_no_other_has() {
    for kind in ["http", "pending", "", "Unix", "a b", "1st"] {
        let add = || Kinds::default().add(kind, |_| Ok(quiet()));
        assert!(std::panic::catch_unwind(add).is_err(), "{kind:?}");
    }
    let mut kinds = Kinds::default();
    kinds.add("unix_socket", |_| Ok(quiet()));
    assert_eq!(kinds.names().collect::<Vec<_>>(), ["unix_socket"]);
    assert!(kinds.make("other", Table(toml::Table::new())).is_none());
    let twice = std::panic::AssertUnwindSafe(|| kinds.add("unix_socket", |_| Ok(quiet())));
    assert!(std::panic::catch_unwind(twice).is_err());
}

fn quiet() -> Scripted {
    Scripted { description: Description::in_batches("t"), answers: Mutex::default(), seen: Arc::default() }
}
