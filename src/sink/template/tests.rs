use super::*;

fn render(mode: Mode, source: &str, row: &[(&str, Option<&str>)]) -> Result<String, Unprintable> {
    let template = Template::compile("key", source, mode).expect("compiles");
    let columns = template.columns().to_vec();
    template.render(|number| {
        let (_, value) = row.iter().find(|(name, _)| *name == columns[number]).expect("the column is given");
        value.map(|text| TemplateValue::Text(text.as_bytes()))
    })
}

#[test]
fn the_columns_are_those_that_the_template_names() {
    let source = "{% if b %}{{ createdAt | default('x') }}{% else %}{% for c in a | split(',') %}{{ c }}{{ loop.index }}{% endfor %}{% endif %}{{ _1 }}";
    let template = Template::compile("text", source, Mode::Text).expect("compiles");
    assert_eq!(template.columns(), ["_1", "a", "b", "createdAt"]);
    assert_eq!(Template::compile("text", "no columns", Mode::Text).expect("compiles").columns(), [""; 0]);
}

#[test]
fn values_are_printed_as_they_are_in_text() {
    let row = [("id", Some("9007199254740993")), ("html", Some("<a href='x'>&</a>\r\n"))];
    assert_eq!(
        render(Mode::Text, "{{ id }} {{ html }}", &row).expect("renders"),
        "9007199254740993 <a href='x'>&</a>\r\n"
    );
}

#[test]
fn json_in_a_column_can_be_walked_through_and_keeps_its_digits() {
    let rows = r#"[{"n": 12345678901234567890.10, "name": "<a>", "ok": true}, {"n": 2, "name": null, "ok": false}]"#;
    let source = "{% for row in rows | fromjson %}{{ row.n }} {{ row.name | default('-') }} {{ 'yes' if row.ok else 'no' }};{% endfor %}";
    let printed = render(Mode::Html, source, &[("rows", Some(rows))]).expect("renders");
    assert_eq!(printed, "12345678901234567890.10 &lt;a&gt; yes;2 - no;");
    assert!(render(Mode::Text, source, &[("rows", Some("[{\"n\": 1}"))]).is_err(), "no JSON");
    assert!(render(Mode::Text, source, &[("rows", Some(&"[".repeat(10_000)))]).is_err(), "too deep");
}

fn of_json(source: &str, json: &str) -> Result<String, Unprintable> {
    let template = Template::compile("key", source, Mode::Text).expect("compiles");
    template.render(|_| Some(TemplateValue::Json(json.as_bytes())))
}

#[test]
fn json_values_are_lists_objects_and_numbers() {
    let rows = r#"[{"n": 12.50, "name": "Ann", "total": 12.5}, {"n": 2, "name": null, "total": 3}]"#;
    let source = "{% for row in rows %}{{ loop.index }}/{{ rows | length }} {{ row.name | default('-') }} {{ row.n }} \
                  {{ 'high' if row.total > 10 else 'low' }};{% endfor %}";
    let printed = "1/2 Ann 12.50 high;2/2 - 2 low;";
    assert_eq!(of_json(source, rows).as_deref(), Ok(printed));
    assert_eq!(of_json(&source.replace("in rows", "in rows | fromjson"), rows).as_deref(), Ok(printed), "once more");
    assert_eq!(of_json("{{ count + 1 }}{% if count > 9 %}!{% endif %}", "10").as_deref(), Ok("11!"));
    let printed = "[{\"n\":[1,null,true,\"a\\\"b\",12.50,12345678901234567890.1]}]";
    assert_eq!(of_json("{{ rows }}", printed).as_deref(), Ok(printed), "as JSON");
    assert_eq!(of_json("{{ rows | tojson }}", printed).as_deref(), Ok(printed));
    assert_eq!(of_json("{{ ok }} {{ ok | tojson }}", "true").as_deref(), Ok("true true"));
}

#[test]
fn hint_of_a_failure_names_its_cause() {
    let hint = |source: &str, json: &str| of_json(source, json).expect_err(source).hint();
    assert!(hint("{{ a }}", "null").contains("default(\"…\") in the template where a value may be NULL"));
    assert!(hint("{{ a.b }}", "{}").starts_with("Correct the name in line 1 of the template"));
    let loops = hint("\n{% for b in a %}{{ b }}{% endfor %}", "7");
    assert!(loops.starts_with("Correct line 2 of the template: it uses a value in a way"), "{loops}");
    assert!(!loops.contains("default("), "{loops}");
}

#[test]
fn a_broken_template_is_an_error_that_names_its_key() {
    for source in [
        "{{ id",
        "{% if id %}",
        "{{ 'due date",
        "{{ id | nonesuch }}",
        "{{ id is nonesuch }}",
        "{% include '/etc/passwd' %}",
        "{{ id.upper() }}",
        "{{ due date }}",
    ] {
        let error = Template::compile("sink.text", source, Mode::Text).expect_err(source);
        assert_eq!(error.key, "sink.text", "{source}");
        assert!(error.problem.starts_with("the template is broken in line 1: "), "{error}");
    }
}

#[test]
fn null_is_printed_only_with_a_default() {
    let row = [("phone", None), ("name", Some("Ann"))];
    assert_eq!(
        render(Mode::Text, "{{ name }} {{ phone }}", &row),
        Err(Unprintable::Null { columns: vec!["phone".into()] })
    );
    assert_eq!(render(Mode::Text, "{{ name }} {{ phone | default('-') }}", &row), Ok("Ann -".into()));
    assert_eq!(render(Mode::Text, "{{ phone | d }}", &row), Ok(String::new()));
    assert_eq!(render(Mode::Text, "{% if phone is none %}none{% endif %}", &row), Ok("none".into()));
    assert_eq!(render(Mode::Text, "{{ phone | tojson }},{{ name | tojson }}", &row), Ok("null,\"Ann\"".into()));
}

#[test]
fn json_strings_cannot_be_left() {
    let row = [("name", Some("\",\"admin\":true,\"x\":\"\u{1}\n"))];
    let text = render(Mode::Text, "{\"name\": {{ name | tojson }}}", &row).expect("renders");
    let json: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(json["name"], row[0].1.expect("set"));
}

#[test]
fn undefined_values_and_functions_are_refused() {
    let row = [("id", Some("1")), ("range", Some("1")), ("debug", Some("1"))];
    assert!(matches!(render(Mode::Text, "{{ id.nothing }}", &row), Err(Unprintable::Failed { .. })));
    assert!(matches!(render(Mode::Text, "{{ range(3) }}", &row), Err(Unprintable::Failed { .. })));
    assert!(matches!(render(Mode::Text, "{{ debug() }}", &row), Err(Unprintable::Failed { .. })));
}

#[test]
fn a_value_in_a_url_stays_in_its_place() {
    let url = |value: &str| render(Mode::Url, "http://h/a/{{ v }}/b?q={{ v }}", &[("v", Some(value))]);
    assert_eq!(
        url("a/b%2e?c#d e&f=ü\\@:\r\n"),
        Ok(["a%2Fb%252e%3Fc%23d%20e%26f%3D%C3%BC%5C%40%3A%0D%0A"; 2].join("/b?q=").replacen("", "http://h/a/", 1))
    );
    assert_eq!(url("-._~9Z"), Ok("http://h/a/-._~9Z/b?q=-._~9Z".into()));
}

#[test]
fn no_spelling_of_dots_climbs_the_path() {
    for (source, value) in [
        ("http://h/a/{{ v }}/b", ".."),
        ("http://h/a/{{ v }}/b", "."),
        ("http://h/a/.{{ v }}", "."),
        ("http://h/a/%2e{{ v }}?x", "."),
        ("http://h/a/{{ v }}{{ v }}#x", "."),
        ("http://h/a/{{ v }}/../b", "x"),
    ] {
        assert_eq!(render(Mode::Url, source, &[("v", Some(value))]), Err(Unprintable::Traversal), "{source} {value}");
    }
    for value in ["../..", "%2e%2e", "..;", "...", "%2E."] {
        let text = render(Mode::Url, "http://h/a/{{ v }}/b", &[("v", Some(value))]).expect(value);
        let parsed = reqwest::Url::parse(&text).expect("parses");
        assert_eq!(parsed.path_segments().expect("has a path").count(), 3, "{text}");
        assert!(parsed.path().starts_with("/a/") && parsed.path().ends_with("/b"), "{text}");
    }
    assert!(render(Mode::Url, "http://h/a?back={{ v }}", &[("v", Some(".."))]).is_ok());
}

#[test]
fn output_is_capped() {
    let long = "x".repeat(5 << 10);
    let row = [("v", Some(long.as_str()))];
    assert_eq!(render(Mode::Line, "{{ v }}{{ v }}", &row), Err(Unprintable::TooLarge { limit: 8 << 10 }));
    assert!(render(Mode::Text, "{{ v }}{{ v }}", &row).is_ok());
}

#[test]
fn errors_and_debug_output_hold_no_values() {
    let row = [("secret", Some("hunter2")), ("phone", None)];
    for source in ["{{ secret }}{{ phone }}", "{{ secret.x }}", "{{ secret + 1 }}"] {
        let error = render(Mode::Text, source, &row).expect_err(source);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    let template = Template::compile("headers.Authorization", "Bearer hunter2", Mode::Line).expect("compiles");
    assert!(!format!("{template:?}").contains("hunter2"));
}

proptest::proptest! {
    #[test]
    fn any_value_yields_a_url_of_the_same_shape(value in ".*") {
        if let Ok(text) = render(Mode::Url, "http://h:1/a/{{ v }}/b?q={{ v }}&r=1", &[("v", Some(&value))]) {
            let url = reqwest::Url::parse(&text).expect("parses");
            assert_eq!((url.host_str(), url.port(), url.username(), url.fragment()), (Some("h"), Some(1), "", None));
            let segments: Vec<_> = url.path_segments().expect("has a path").collect();
            assert_eq!((segments.len(), segments[0], segments[2]), (3, "a", "b"));
            let query: Vec<_> = url.query_pairs().collect();
            assert_eq!(query.len(), 2);
            assert_eq!(query[0].1, value);
        }
    }
}

// Guarantee: secrets.email-injection
#[test]
fn values_are_escaped_in_html_whatever_the_template_says() {
    // `w` and `m` are the templates' own names, which count as columns, too.
    let row = [("v", Some("<b title=\"x\">&'</b>")), ("w", None), ("m", None)];
    let escaped = "&lt;b title=&quot;x&quot;&gt;&amp;&#x27;&lt;&#x2f;b&gt;";
    for source in [
        "{{ v }}",
        "{% autoescape false %}{{ v }}{% endautoescape %}",
        "{{ v | default('x') }}",
        "{{ v | escape }}",
        "{% set w %}{{ v }}{% endset %}{{ w }}",
        "{% set w %}{% autoescape false %}{{ v }}{% endautoescape %}{% endset %}{{ w }}",
        "{% macro m(w) %}{{ w }}{% endmacro %}{{ m(v) }}",
        "{% autoescape false %}{% macro m(w) %}{{ w }}{% endmacro %}{% endautoescape %}{{ m(v) }}",
    ] {
        assert_eq!(render(Mode::Html, source, &row).as_deref(), Ok(escaped), "{source}");
    }
    assert_eq!(render(Mode::Html, "<p>{{ v | length }} {{ '<' }}</p>", &row).as_deref(), Ok("<p>19 &lt;</p>"));
    let shown =
        render(Mode::Html, "{% autoescape false %}{% set w %}{{ v }}{% endset %}{% endautoescape %}{{ w }}", &row);
    assert!(!shown.expect("renders").contains('<'), "twice rather than never");
    let error = Template::compile("html", "{{ v | safe }}", Mode::Html).expect_err("no such filter");
    assert!(error.problem.contains("safe"), "{error}");
}
