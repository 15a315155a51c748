//! What a row can cost: depth, size and work.

use super::*;

const PRINTED: &str = "{{ v | fromjson | tojson }}";

/// With more CPU time than a debug build on a busy machine needs for what the other limits allow.
pub(super) fn render(source: &str, json: &str) -> Result<String, Unprintable> {
    let minute = Duration::from_secs(60);
    let template = Template::compile_within("key", source, Mode::Text, minute).expect("compiles");
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

// Guarantee: secrets.template-limits
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

// Guarantee: secrets.template-limits
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

// Guarantee: secrets.template-limits
#[test]
fn work_of_a_template_is_bounded() {
    let row = format!("[{}0]", "0,".repeat(99_999));
    let source = "{% set l = v | fromjson %}{% for a in l %}{% for b in l %}{% endfor %}{% endfor %}";
    let error = render(source, &row).expect_err("ten thousand million steps");
    assert!(error.to_string().contains("20000000 steps"), "{error}");
    assert!(render("{% for a in v | fromjson %}{{ a + 1 if a < 9 else '-' }}{% endfor %}", &row).is_ok());
}

/// What each step costs grows with the row: a list is searched for each element of another one.
// Guarantee: secrets.template-limits
#[test]
fn work_that_grows_with_the_square_is_bounded() {
    let list =
        |from: usize| format!("[{}]", (from..from + 90_000).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let row = format!("[{},{}]", list(100_000), list(200_000));
    let both = "{% set both = v | fromjson %}{% set a = both[0] %}{% set b = both[1] %}";
    for source in [
        "{% for x in a %}{% if x in b %}{{ x }}{% endif %}{% endfor %}",
        "{%- for x in (a if a else b) if (x in b) recursive -%} {{ x }} {%- endfor -%}",
        "{{ a | select('in', b) | list | length }}",
        "{{ a | map('replace', v, 'x') | list | length }}{% for x in a %}{{ '' if v | replace(x, '') | length }}{% endfor %}",
        "{% macro m(x) %}{{ '' if x in b }}{{ m(x) }}{{ m(x) }}{% endmacro %}{% for x in a %}{{ m(x) }}{% endfor %}",
        "{% for x in v %}{{ '' if x in b }}{% endfor %}",
        "{% for x in v | list %}{{ '' if '!' in v }}{% endfor %}",
    ] {
        let limit = Duration::from_millis(200);
        let template =
            Template::compile_within("key", &format!("{both}{source}"), Mode::Text, limit).expect("compiles");
        let begun = std::time::Instant::now();
        let error = template.render(|_| Some(TemplateValue::Text(row.as_bytes()))).expect_err(source);
        println!("{:?} {source}", begun.elapsed());
        assert_eq!(error, Unprintable::TooSlow { limit }, "{source}");
    }
}

/// Of a few bytes of the row a filter could make gigabytes, of which nothing need be printed.
// Guarantee: secrets.template-limits
#[test]
fn memory_that_filters_take_is_bounded() {
    let row = format!("[{}0]", "0,".repeat(50_000));
    for source in [
        "{{ 'x' | indent(99999999999) | length }}",
        "{{ 'x' | indent(width=99999999999) | length }}",
        "{{ v | replace(',', '\n') | indent(1000) | length }}",
        "{{ v | replace('0', v) | length }}",
        "{{ v | replace('', v) | length }}",
        "{{ v | fromjson | join(v) | length }}",
        "{{ v | join(v) | length }}",
        "{{ v | fromjson | join(d=v) | length }}",
        "{{ v | fromjson | map('replace', '0', v) | list | length }}",
        "{{ [1] | slice(99999999999) | length }}",
        "{{ [1] | batch(99999999999, 'x') | length }}",
        "{{ '%99999999999d' | format(1) | length }}",
        "{{ ('%' ~ 99999999999 ~ 's') | format('a') | length }}",
        "{{ '%*d' | format(99999999999, 1) | length }}",
        "{{ ((v | fromjson) * 100) | list | length }}",
        "{{ ((v | fromjson) * 100) | join | length }}",
        "{{ ((v | fromjson) * 100) | sort | length }}",
        "{{ ['x' * 10000] * 10000 }}",
        "{{ (['x' * 10000] * 10000) | tojson | length }}",
    ] {
        let error = render(source, &row).expect_err(source);
        assert!(matches!(error, Unprintable::TooMuch { .. }), "{source}: {error}");
    }
    for (source, printed) in [
        ("{{ v | fromjson | length }}", "50001"),
        ("{{ v | replace(',', '; ') | length }}", "150003"),
        ("{{ [1, 2] | join(', ') }}{{ [1, 2] | join(d='; ') }}", "1, 21; 2"),
        ("{{ 'a\nb' | indent }}{{ 'a\nb' | indent(width=2) }}", "a\n    ba\n  b"),
        ("{{ '%08.3f|%s' | format(1.5, 'x') }}", "0001.500|x"),
        ("{{ [1, 2, 3] | batch(2, '-') | list }}{{ [1, 2, 3] | slice(2) | list }}", "[[1,2],[3,\"-\"]][[1,2],[3]]"),
        ("{{ [3, 1] | sort(reverse=true) | map('string') | join('+') }}", "3+1"),
        ("{{ [3, 1] | select('in', [1]) | list }}{{ 1 is in [1] }}", "[1]true"),
    ] {
        assert_eq!(render(source, &row).as_deref(), Ok(printed), "{source}");
    }
}

// Guarantee: secrets.template-limits
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
