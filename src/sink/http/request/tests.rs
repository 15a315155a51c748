use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;
use crate::sink::http::Body;

fn config(url: &str) -> Config {
    Config {
        method: "POST".into(),
        url: url.into(),
        headers: BTreeMap::new(),
        body: Body::Row,
        timeout: Duration::from_secs(1),
        rate_per_second: None,
        once: crate::sink::http::once::Config::default(),
        access: crate::sink::http::access::Config::default(),
    }
}

/// Builds the request of a row whose columns are all `value`.
fn build(config: &Config, id: &str, value: Option<&str>) -> Result<Request, Failure> {
    let requests = Requests::compile(config, "bookings").expect("compiles");
    let mut batch = Batch::new(requests.fields().len());
    batch.push(Timestamp::from_pg_micros(1), id, requests.fields().iter().map(|_| value.map(str::as_bytes)));
    requests.build(&batch.message(0), None)
}

fn body(request: &Request) -> &str {
    std::str::from_utf8(request.body().and_then(|body| body.as_bytes()).expect("a body")).expect("UTF-8")
}

#[test]
fn exactly_the_columns_that_templates_name_are_asked_for() {
    let mut config = config("http://h/{{ id }}");
    config.headers.insert("X-Name".into(), "{{ name }} {{ id }}".into());
    let requests = Requests::compile(&config, "r").expect("compiles");
    assert_eq!(requests.fields(), [Field::Text("id".into()), Field::Text("name".into()), Field::Row]);
}

#[test]
fn the_row_goes_out_byte_for_byte_with_its_idempotency_key() {
    let row = r#"{"id":9007199254740993, "x" : "\u0000"}"#;
    let request = build(&config("http://127.0.0.1:1/in?x=1"), "42", Some(row)).expect("builds");
    assert_eq!(body(&request), row);
    assert_eq!(request.headers()["idempotency-key"], "bookings/42");
    assert_eq!(request.headers()["content-type"], "application/json");
    assert_eq!(request.url().as_str(), "http://127.0.0.1:1/in?x=1");
}

#[test]
fn odd_ids_make_different_valid_keys() {
    let key = |id: &str| {
        let request = build(&config("http://h/"), id, Some("{}")).expect("builds");
        request.headers()["idempotency-key"].to_str().expect("ASCII").to_owned()
    };
    assert_eq!(key("a-b_c:d/e"), "bookings/a-b_c:d/e");
    assert_eq!(key("x\r\nEvil: 1"), "bookings/x%0D%0AEvil:%201");
    assert_ne!(key("a b"), key("a%20b"));
    assert_ne!(key("a"), key(" a"));
}

#[test]
fn a_form_is_encoded() {
    let mut config = config("http://h/");
    config.body = Body::Form(vec![("To".into(), "{{ v }}".into()), ("a&b".into(), "x {{ v }}".into())]);
    let request = build(&config, "1", Some("+1&=ü%\n")).expect("builds");
    assert_eq!(body(&request), "To=%2B1%26%3D%C3%BC%25%0A&a%26b=x%20%2B1%26%3D%C3%BC%25%0A");
    assert_eq!(request.headers()["content-type"], "application/x-www-form-urlencoded");
}

#[test]
fn configured_headers_replace_the_defaults() {
    let mut config = config("http://h/");
    config.body = Body::Template("{\"v\":{{ v | tojson }}}".into());
    config.headers.insert("Content-Type".into(), "application/json".into());
    let request = build(&config, "1", Some("\"")).expect("builds");
    assert_eq!(body(&request), r#"{"v":"\""}"#);
    assert_eq!(request.headers().get_all("content-type").iter().count(), 1);
    assert_eq!(request.headers()["content-type"], "application/json");
}

// Guarantee: secrets.hosts
#[test]
fn values_that_no_header_may_hold_are_poison_and_not_stripped() {
    let mut config = config("http://h/");
    config.headers.insert("X-Name".into(), "n={{ v }}".into());
    for value in ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\u{7f}b", "a\u{b}", "ü", "\u{2028}"] {
        let failure = build(&config, "1", Some(value)).expect_err(value);
        assert_eq!((failure.class, failure.code.as_str()), (Class::Poison, "invalid_header"), "{value:?}");
        assert!(!failure.message.contains(value), "{failure:?}");
    }
    let request = build(&config, "1", Some("a: b\tc")).expect("a tab is allowed");
    assert_eq!(request.headers()["x-name"], "n=a: b\tc");
}

#[test]
fn a_row_that_cannot_be_printed_is_poison() {
    let failure = build(&config("http://h/{{ id }}"), "1", None).expect_err("NULL");
    assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Poison, false, "template"));
    assert_eq!(failure.message, "The template of url cannot be printed. It prints NULL; NULL in this row: id");
    assert_eq!(build(&config("http://h/{{ id }}/x"), "1", Some("..")).expect_err("climbs").class, Class::Poison);
}

// Guarantee: secrets.hosts
#[test]
fn no_row_chooses_the_host() {
    for url in ["{{ url }}", "http://{{ host }}/", "http://h{{ v }}", "http://h:{{ port }}/", "ht{{ v }}tp://h/"] {
        let problems = Requests::compile(&config(url), "r").expect_err(url);
        assert_eq!(problems.iter().map(|problem| problem.key.as_str()).collect::<Vec<_>>(), ["url"], "{url}");
    }
    for value in ["@evil", "//evil", "\\\\evil", ":9@evil/", "#", "?"] {
        let request = build(&config("http://h/{{ v }}?{{ v }}"), "1", Some(value)).expect("builds");
        assert_eq!(request.url().origin().ascii_serialization(), "http://h", "{value}");
    }
}

#[test]
fn all_problems_are_reported_together() {
    let mut config = config("ftp://h/");
    config.method = "GET".into();
    config.body = Body::Template("{{ v".into());
    for (name, value) in
        [("Host", "x"), ("no name", "x"), ("x-a", "1"), ("X-A", "2"), ("X-B", "{{"), ("Idempotency-Key", "k")]
    {
        config.headers.insert(name.into(), value.into());
    }
    let problems = Requests::compile(&config, "r").expect_err("nothing is right");
    let mut keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    keys.sort_unstable();
    let expected = [
        "body",
        "headers.Host",
        "headers.Idempotency-Key",
        "headers.X-B",
        "headers.no name",
        "headers.x-a",
        "method",
        "url",
    ];
    assert_eq!(keys, expected);
    for url in ["", "/path", "http://", "https://user:pw@h/", "http://h:99999/"] {
        let mut config = config.clone();
        config.url = url.into();
        let problems = Requests::compile(&config, "r").expect_err(url);
        assert!(problems.iter().any(|problem| problem.key == "url"), "{url}");
    }
}

/// Builds the request of a row that brings these headers along.
fn with_own(own: &str) -> Result<Request, Failure> {
    let mut requests = Requests::compile(&config("http://h/"), "bookings").expect("compiles");
    requests.pass_on_headers();
    let mut batch = Batch::new(requests.fields().len());
    batch.push(Timestamp::from_pg_micros(1), "1", requests.fields().iter().map(|_| Some(own.as_bytes())));
    requests.build(&batch.message(0), None)
}

#[test]
fn row_with_too_many_headers_is_poison() {
    let members: Vec<_> = (0..30_000).map(|number| format!("\"h{number}\": 1")).collect();
    let failure = with_own(&format!("{{{}}}", members.join(","))).expect_err("poison");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Poison, "invalid_header"));
    assert!(failure.message.contains("30000") && failure.message.contains("100"), "{}", failure.message);
}

#[test]
fn row_cannot_call_itself_replayed() {
    let request = with_own(r#"{"Outbox-Replayed": "true", "event": "OrderPaid"}"#).expect("builds");
    assert_eq!(request.headers()["event"], "OrderPaid");
    assert!(!request.headers().contains_key("outbox-replayed"));
}
