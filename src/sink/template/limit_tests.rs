//! What a row can cost: depth, size and work.

use super::*;

const PRINTED: &str = "{{ v | fromjson | tojson }}";

fn render(source: &str, json: &str) -> Result<String, Unprintable> {
    let template = Template::compile("key", source, Mode::Text).expect("compiles");
    template.render(|_| Some(TemplateValue::Text(json.as_bytes())))
}

fn render_typed(source: &str, json: &str) -> Result<String, Unprintable> {
    let template = Template::compile("key", source, Mode::Text).expect("compiles");
    template.render(|_| Some(TemplateValue::Json(json.as_bytes())))
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// With the stack of a worker thread.
fn on_worker_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("starts").join().expect("passes");
}

#[test]
fn deep_json_is_poison_with_depth_and_limit() {
    on_worker_stack(|| {
        assert_eq!(render(PRINTED, &nested(128)), Ok(nested(128)));
        assert_eq!(render_typed("{{ v }}", &nested(128)), Ok(nested(128)));
        for levels in [129, 4_000, 400_000] {
            let error = render(PRINTED, &nested(levels)).expect_err("too deep").to_string();
            assert_eq!(error, format!("JSON of {levels} levels; the limit is 128"));
            let error = render_typed("{{ v }}", &nested(levels)).expect_err("too deep").to_string();
            assert_eq!(error, format!("JSON of {levels} levels; the limit is 128"));
        }
        let objects = format!("{}1{}", "{\"[\": ".repeat(129), "}".repeat(129));
        let error = render(PRINTED, &objects).expect_err("too deep").to_string();
        assert_eq!(error, "JSON of 129 levels; the limit is 128");
    });
}

#[test]
fn large_json_is_poison_with_size_and_limit() {
    let list = |bytes: usize| format!("[{}0]", "0,".repeat((bytes - 3) / 2));
    assert!(render("{{ v | fromjson | length }}", &list((2 << 20) - 1)).is_ok());
    for source in ["{{ v | fromjson | length }}", "{% for n in [1, 2, 3] %}{{ v | fromjson | length }}{% endfor %}"] {
        let error = render(source, &list((2 << 20) + 1)).expect_err("too large").to_string();
        assert_eq!(error, "JSON of 2097153 bytes; the limit is 2097152");
    }
    let error = render("{% for n in [1, 2, 3] %}{{ v | fromjson | length }}{% endfor %}", &list(1 << 20));
    assert_eq!(error.expect_err("altogether").to_string(), "JSON of 3145725 bytes; the limit is 2097152");
}

#[test]
fn work_of_a_template_is_bounded() {
    let row = format!("[{}0]", "0,".repeat(99_999));
    let source = "{% set l = v | fromjson %}{% for a in l %}{% for b in l %}{% endfor %}{% endfor %}";
    let error = render(source, &row).expect_err("ten thousand million steps");
    assert!(error.to_string().contains("20000000 steps"), "{error}");
    assert!(render("{% for a in v | fromjson %}{{ a + 1 if a < 9 else '-' }}{% endfor %}", &row).is_ok());
}

#[test]
fn endless_recursion_of_a_template_is_an_error() {
    on_worker_stack(|| {
        for source in [
            "{% for a in v | fromjson recursive %}{{ loop(v | fromjson) }}{% endfor %}",
            "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(v) }}",
        ] {
            assert!(render(source, "[1]").is_err(), "{source}");
        }
        let tree = format!("{}[]{}", "[".repeat(100), "]".repeat(100));
        let walk = "{% for a in v | fromjson recursive %}({{ loop(a) }}){% endfor %}";
        assert_eq!(render(walk, &tree).as_deref(), Ok(&*format!("{}{}", "(".repeat(100), ")".repeat(100))));
    });
}

#[test]
fn broken_json_is_an_error() {
    for json in [
        "",
        " ",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{\"a\" 1}",
        "\"a",
        "\"\\x\"",
        "\"\\\"",
        "\"\n\"",
        "tru",
        "truex",
        "nul",
        "01",
        "1.",
        "-",
        "+1",
        "1e",
        "NaN",
        "1 1",
        "[1]]",
        "]",
        "}",
        "[}",
        "{]",
        "'a'",
        "\"a\"b",
    ] {
        assert!(render(PRINTED, json).is_err(), "{json}");
        assert!(render_typed("{{ v | tojson }}", json).is_err(), "{json}");
    }
}

proptest::proptest! {
    #[test]
    fn json_is_read_as_another_reader_does(document in json()) {
        let text = serde_json::to_string_pretty(&document).expect("is JSON");
        let printed = render(PRINTED, &text).expect("is read");
        let read: serde_json::Value = serde_json::from_str(&printed).expect("is JSON");
        assert_eq!(read, document);
        assert_eq!(render_typed("{{ v | tojson }}", &text).as_ref(), Ok(&printed));
    }

    #[test]
    fn altered_json_is_judged_as_another_reader_does(document in json(), at in 0_usize..200, byte in "[ -~]") {
        let mut text = document.to_string();
        let at = at % (text.len() + 1);
        if text.is_char_boundary(at) {
            text.insert_str(at, &byte);
            let other = serde_json::from_str::<&serde_json::value::RawValue>(&text);
            assert_eq!(render(PRINTED, &text).is_ok(), other.is_ok(), "{text}");
        }
    }
}

fn json() -> impl proptest::strategy::Strategy<Value = serde_json::Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<i32>().prop_map(|eighths| serde_json::Value::from(f64::from(eighths) / 8.0)),
        ".*".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::hash_map(".*", inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}
