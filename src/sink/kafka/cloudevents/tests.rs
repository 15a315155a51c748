//! Events of made-up rows, held to the specification's own words and examples.

use serde_json::{Value, json};

use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;

fn config() -> CloudEvents {
    CloudEvents {
        mode: EventMode::Binary,
        source: Some("/mycontext".to_owned()),
        kind: "{{ kind }}".to_owned(),
        subject: None,
        dataschema: None,
        datacontenttype: "application/json".to_owned(),
        extensions: BTreeMap::new(),
    }
}

/// The events of a configuration for rows of a payload and the columns that its templates name, in that order.
fn events(config: &CloudEvents) -> Events {
    let mut fields = 1;
    let mut want = |_: &str| {
        fields += 1;
        fields - 1
    };
    Events::new(config, "booking events", &mut want).expect("valid")
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).expect("an instant")
}

fn row(mut batch: Batch, at: Timestamp, id: &str, values: &[Option<&str>]) -> Batch {
    batch.push(at, id, values.iter().map(|value| value.map(str::as_bytes)));
    batch
}

fn of(id: &str, values: &[Option<&str>]) -> Batch {
    row(Batch::new(values.len()), at("2018-04-05T17:31:00Z"), id, values)
}

fn headers(events: &Events, batch: &Batch) -> BTreeMap<String, String> {
    let event = events.of(&batch.message(0)).expect("an event");
    let text = |(name, value): (&str, &[u8])| (name.to_owned(), String::from_utf8_lossy(value).into_owned());
    event.headers().into_iter().map(text).collect()
}

fn object(events: &Events, batch: &Batch) -> Value {
    let message = batch.message(0);
    let event = events.of(&message).expect("an event");
    let value = event.value(message.value(0)).expect("a value").expect("an object");
    assert_eq!(event.headers(), [("content-type", b"application/cloudevents+json; charset=UTF-8".as_slice())]);
    serde_json::from_slice(&value).expect("JSON")
}

fn refused(events: &Events, batch: &Batch) -> (String, String) {
    let message = batch.message(0);
    let made = events.of(&message).and_then(|event| event.value(message.value(0)).map(drop));
    let failure = made.expect_err("poison");
    assert_eq!((failure.class, failure.code.as_str(), failure.subject), (Class::Poison, CODE, Subject::Message));
    (failure.message, failure.hint)
}

#[test]
fn binary_mode_has_each_attribute_in_a_header_and_the_payload_as_it_is() {
    let events = events(&CloudEvents {
        subject: Some("{{ subject }}".to_owned()),
        dataschema: Some("https://example.org/a.json".to_owned()),
        extensions: [("tenant".to_owned(), "{{ tenant }}".to_owned())].into(),
        ..config()
    });
    let batch =
        of("1234-1234-1234", &[Some("{}"), Some("com.example.someevent"), Some("larger-context"), Some("acme ä")]);
    let expected = [
        ("ce_specversion", "1.0"),
        ("ce_id", "1234-1234-1234"),
        ("ce_source", "/mycontext"),
        ("ce_type", "com.example.someevent"),
        ("ce_subject", "larger-context"),
        ("ce_dataschema", "https://example.org/a.json"),
        ("ce_tenant", "acme ä"),
        ("ce_time", "2018-04-05T17:31:00.000000Z"),
        ("content-type", "application/json"),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(headers(&events, &batch), expected);
    let event = events.of(&batch.message(0)).expect("an event");
    for payload in [None, Some(b"\xff".as_slice())] {
        assert_eq!(event.value(payload).expect("any payload").as_deref(), payload);
    }
}

#[test]
fn structured_mode_gives_the_examples_of_the_specification() {
    let structured = |datacontenttype: &str| {
        let extensions = [("comexampleextension1".to_owned(), "value".to_owned())].into();
        let datacontenttype = datacontenttype.to_owned();
        events(&CloudEvents { mode: EventMode::Structured, datacontenttype, extensions, ..config() })
    };
    let example = |id: &str, datacontenttype: &str, more: Value| {
        let mut example = json!({
            "specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext", "id": id,
            "time": "2018-04-05T17:31:00.000000Z", "comexampleextension1": "value", "datacontenttype": datacontenttype
        });
        example.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        example
    };
    let kind = Some("com.example.someevent");
    let payload = "{ \"appinfoA\" : \"abc\", \"appinfoB\" : 123, \"appinfoC\" : true }";
    let data = json!({"data": {"appinfoA": "abc", "appinfoB": 123, "appinfoC": true}});
    for json in ["application/json", "application/vnd.a+JSON; charset=utf-8"] {
        assert_eq!(object(&structured(json), &of("C234", &[Some(payload), kind])), example("C234", json, data.clone()));
    }
    for xml in ["application/xml", "text/xml", "image/svg+xml"] {
        let data = json!({"data": "<much wow=\"xml\"/>"});
        assert_eq!(
            object(&structured(xml), &of("B234", &[Some("<much wow=\"xml\"/>"), kind])),
            example("B234", xml, data)
        );
    }
    let binary = "application/vnd.apache.thrift.binary";
    let data = json!({"data_base64": "YWJj"});
    assert_eq!(object(&structured(binary), &of("A234", &[Some("abc"), kind])), example("A234", binary, data));
    // Without data, and with data that is null.
    let json = "application/json";
    assert_eq!(object(&structured(json), &of("D", &[None, kind])), example("D", json, json!({})));
    assert_eq!(object(&structured(json), &of("D", &[Some("null"), kind])), example("D", json, json!({"data": null})));
}

#[test]
fn digits_of_the_payload_stay_as_they_are() {
    let events = events(&CloudEvents { mode: EventMode::Structured, ..config() });
    let batch = of("1", &[Some("{\"id\":9007199254740993, \"n\":1.10}"), Some("a\"\\")]);
    let message = batch.message(0);
    let value = events.of(&message).and_then(|event| event.value(message.value(0))).expect("made").expect("a value");
    let text = String::from_utf8(value.into_owned()).expect("UTF-8");
    assert!(text.ends_with(",\"data\":{\"id\":9007199254740993, \"n\":1.10}}"), "{text}");
    assert!(text.contains("\"type\":\"a\\\"\\\\\""), "{text}");
}

#[test]
fn what_makes_no_valid_attribute_is_poison_that_names_it() {
    let strict = events(&CloudEvents { source: Some("{{ source }}".to_owned()), ..config() });
    for (values, message) in [
        (
            [Some("a"), None],
            "The CloudEvents attribute type fails for this row: It prints NULL; NULL in this row: kind",
        ),
        ([Some("a"), Some("")], "The CloudEvents attribute type of this row is empty"),
        ([Some("a"), Some("a\nb")], "The CloudEvents attribute type of this row has a control character"),
        ([Some("a b"), Some("a")], "The CloudEvents attribute source of this row is no URI reference"),
    ] {
        let (said, hint) = refused(&strict, &of("1", &[Some("{}"), values[0], values[1]]));
        assert!(said.starts_with(message), "{said}");
        assert!(hint.contains("orrect") && hint.contains("row"), "{hint}");
        assert!(!said.contains("a b"), "what a row holds is not told: {said}");
    }
    for id in ["", "a\tb"] {
        let (said, _) = refused(&strict, &of(id, &[Some("{}"), Some("a"), Some("a")]));
        assert!(said.starts_with("The CloudEvents attribute id of this row "), "{said}");
    }
}

#[test]
fn optional_attribute_that_is_empty_is_left_out_and_one_that_is_null_is_poison() {
    let of_subject = |subject: &str| events(&CloudEvents { subject: Some(subject.to_owned()), ..config() });
    let without = of("1", &[Some("{}"), Some("a"), None]);
    assert!(!headers(&of_subject("{{ subject | default('') }}"), &without).contains_key("ce_subject"));
    let (_, hint) = refused(&of_subject("{{ subject }}"), &without);
    assert!(hint.ends_with("An attribute that is empty is left out."), "{hint}");
}

#[test]
fn payload_that_is_not_what_its_media_type_says_is_poison_in_structured_mode() {
    let of_type = |datacontenttype: &str| {
        events(&CloudEvents { mode: EventMode::Structured, datacontenttype: datacontenttype.to_owned(), ..config() })
    };
    for payload in ["", "{", "{} {}", "text"] {
        let (said, hint) = refused(&of_type("application/json"), &of("1", &[Some(payload), Some("a")]));
        assert_eq!(said, "The payload is no JSON, which it should be by its datacontenttype application/json");
        assert!(hint.contains("datacontenttype"), "{hint}");
    }
    for datacontenttype in ["text/plain", "application/json"] {
        let mut batch = Batch::new(2);
        batch.push(at("2018-04-05T17:31:00Z"), "1", [Some(b"\"\xff\"".as_slice()), Some(b"a".as_slice())]);
        refused(&of_type(datacontenttype), &batch);
    }
}

#[test]
fn row_that_is_due_again_is_another_event_and_an_instant_without_four_digits_is_left_out() {
    let events = events(&CloudEvents { source: None, ..config() });
    let due = row(Batch::of_due_rows(2), at("2026-11-21T08:00:00Z"), "7", &[Some("{}"), Some("a")]);
    let due = headers(&events, &due);
    assert_eq!(
        (due["ce_id"].as_str(), due["ce_source"].as_str()),
        ("7/2026-11-21T08:00:00.000000Z", "/outbox-relay/booking%20events")
    );
    for at in [Timestamp::INFINITY, Timestamp::NEG_INFINITY, Timestamp::from_pg_micros(300_000_000_000_000_000)] {
        let batch = row(Batch::new(2), at, "7", &[Some("{}"), Some("a")]);
        assert!(!headers(&events, &batch).contains_key("ce_time"), "{at}");
    }
}

/// Libraries that take header names of another case for ours would read a row's headers as attributes.
#[test]
fn headers_of_any_case_are_the_formats_own() {
    for name in ["ce_type", "CE_Type", "Ce_id", "content-type", "Content-Type", "CONTENT-TYPE"] {
        assert!(owns_header(name), "{name}");
    }
    for name in ["ce", "type", "content-typ", "cetype", "ä_ä"] {
        assert!(!owns_header(name), "{name}");
    }
}

#[test]
fn values_stay_in_their_place_of_an_address() {
    let source = |template: &str, value: &str| {
        let events = events(&CloudEvents { source: Some(template.to_owned()), ..config() });
        let batch = of("1", &[Some("{}"), Some(value), Some("t")]);
        headers(&events, &batch).remove("ce_source").expect("a source")
    };
    assert_eq!(
        source("/tenants/{{ subject }}/bookings", "Müller & Co/x?y#"),
        "/tenants/M%C3%BCller%20%26%20Co%2Fx%3Fy%23/bookings"
    );
    assert_eq!(source("{{ subject }}", "https://example.org/a?b"), "https://example.org/a?b");
}

#[test]
fn text_of_another_charset_is_no_string() {
    assert_eq!(data("text/plain"), Data::Text);
    assert_eq!(data("text/plain; charset=\"UTF-8\""), Data::Text);
    assert_eq!(data("text/plain; charset=iso-8859-1"), Data::Base64);
    assert_eq!(data("application/x; a=\"charset\""), Data::Base64);
}
