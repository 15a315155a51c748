//! How much is held of how many topics.

use super::super::codec::Codec;
use super::super::kept::Kept;
use super::super::question::{Question, Which};
use super::super::registry::Given;
use super::super::topics::{MOST, OfTopic, Topics};
use super::*;

fn given(id: u32, text: &str) -> Arc<Given> {
    let (kind, text) = (SchemaKind::Avro.in_registry().to_owned(), text.to_owned());
    Arc::new(Given { id, version: None, kind, text, references: Vec::new() })
}

fn of_topic(topic: &str, given: Arc<Given>) -> OfTopic {
    let codec = Codec::new(&format(registry("http://127.0.0.1")), &given).expect("a schema");
    let question = Question { subject: format!("{topic}-value"), which: Which::Latest };
    OfTopic { kept: Arc::new(Kept::new(question)), id: given.id, given, codec: Arc::new(codec), unusable: None }
}

#[test]
fn topic_that_was_not_used_for_longest_is_forgotten_when_they_become_too_many() {
    let topics = Topics::default();
    for number in 0..MOST {
        topics.insert(&number.to_string(), of_topic("t", given(1, "\"string\"")));
    }
    // In the place of itself, and then used again.
    topics.insert("1", of_topic("t", given(1, "\"string\"")));
    assert!(topics.get("0").is_some());
    topics.insert("one more", of_topic("t", given(1, "\"string\"")));
    let has = |topic: &str| topics.get(topic).is_some();
    assert_eq!(["0", "1", "2", "3", "one more"].map(has), [true, true, false, true, true]);
}

#[test]
fn topic_whose_schema_is_unusable_now_is_forgotten_last() {
    let topics = Topics::default();
    let failure = Failure::of(Class::Fatal, "schema_unusable", "it is no schema", "Correct it");
    topics.insert("faulty", OfTopic { unusable: Some(failure), ..of_topic("t", given(1, "\"string\"")) });
    for number in 0..MOST {
        topics.insert(&number.to_string(), of_topic("t", given(1, "\"string\"")));
    }
    let has = |topic: &str| topics.get(topic).is_some();
    assert_eq!(["faulty", "0", "1"].map(has), [true, false, true]);
}

#[test]
fn codec_is_that_of_any_topic_with_the_same_schema_and_of_no_other() {
    let topics = Topics::default();
    topics.insert("a", of_topic("a", given(1, V1)));
    let failure = Failure::of(Class::Fatal, "schema_unusable", "it is no schema", "Correct it");
    topics.insert("b", OfTopic { given: given(9, "{"), unusable: Some(failure), ..of_topic("b", given(2, V2)) });
    let held = topics.get("a").expect("held").codec.clone();
    assert!(topics.codec(&given(7, V1)).is_some_and(|codec| Arc::ptr_eq(&codec, &held)), "under another id, too");
    assert!(topics.codec(&given(1, "\"string\"")).is_none());
    assert!(topics.codec(&given(9, "{")).is_none(), "it is that of the schema before");
}

#[tokio::test]
async fn topics_with_the_same_schema_are_written_by_one_codec_under_ids_of_their_own() {
    let server = Server::start().await;
    server.latest("t-value", 1, V1);
    server.latest("other-value", 2, V1);
    let stage = Stage::new(&format(registry(&server.url)));
    stage.prepare().await.expect("given");
    stage.0.prepare(&stage.1, "other").await.expect("given");
    assert!(Arc::ptr_eq(&stage.0.codec("t").expect("held"), &stage.0.codec("other").expect("held")));
    let other = stage.0.encode("other", b"{\"id\":1}", 1_000).expect("fits");
    assert_eq!((stage.encode("{\"id\":1}").expect("fits")[4], other[4]), (1, 2));
}
