//! What operators make and blocks keep, which no filter does.

use super::limit_tests::render;
use super::*;

/// An operator is no filter: what it would make is asked, too.
// Guarantee: secrets.template-limits
#[test]
fn memory_that_multiplication_takes_is_bounded() {
    for source in [
        "{{ ('-' * v) | length }}",
        "{{ (v * '-') | length }}",
        "{{ ((1,) * v) | length }}",
        "{{ (1 + 1 * v * 2 // 2 * '-') | length }}",
        "{% set x = ['-' * v | int][0] %}{{ x[:2 * 1] | length }}",
        "{% if '-' * v %}x{% endif %}",
        "{{ {'a': '-' * v}['a'] | length }}",
    ] {
        let source = source.replace('v', "(v | int)");
        let error = render(&source, "99000000").expect_err(&source);
        assert!(matches!(error, Unprintable::TooMuch { .. }), "{source}: {error}");
        assert!(render(&source, "1").is_ok() || source.contains("1 +"), "{source}");
    }
    let many = "{% for a in v | fromjson %}{{ ('-' * 1000000)[:1] }}{% endfor %}";
    assert!(matches!(render(many, &format!("[{}0]", "0,".repeat(40))), Err(Unprintable::TooMuch { .. })));
}

/// Each step makes twice what it was given: 20,000,000 steps are no limit for it.
// Guarantee: secrets.template-limits
#[test]
fn memory_that_joining_takes_is_bounded() {
    for source in [
        "{% macro m(x, n) %}{% if n %}{{ m(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ m('-', v) }}",
        "{% macro m(x, n) %}{% if n %}{{ m(x + x, n - 1) }}{% endif %}{% endmacro %}{{ m('-', v) }}",
        "{% macro m(x, n) %}{% if n %}{{ m(x + x, n - 1) }}{% endif %}{% endmacro %}{{ m([1], v) }}",
        "{% macro m(x, n) %}{% if n %}{{ m([x] ~ [x], n - 1) }}{% endif %}{% endmacro %}{{ m('-', v) }}",
    ] {
        let source = source.replace('v', "(v | int)");
        let error = render(&source, "40").expect_err(&source);
        assert!(matches!(error, Unprintable::TooMuch { .. }), "{source}: {error}");
        assert!(render(&source, "10").is_ok(), "{source}");
    }
}

/// What a block keeps is no output yet, so that the limit of outputs does not see it.
// Guarantee: secrets.template-limits
#[test]
fn memory_that_blocks_keep_is_bounded() {
    let row = format!("[{}0]", "0,".repeat(50_000));
    let long = "-".repeat(2_000);
    for source in [
        "{% set x %}{% for a in v | fromjson %}{{ v }}{% endfor %}{% endset %}{{ x | length }}",
        "{% macro m() %}{% for a in v | fromjson %}{{ v }}{% endfor %}{% endmacro %}{{ m() | length }}",
        "{% filter length %}{% for a in v | fromjson %}{{ v }}{% endfor %}{% endfilter %}",
        "{% set x %}{% for a in v | fromjson %}LONG{% endfor %}{% endset %}{{ x | length }}",
        "{% set x %}{% for a in v | fromjson %}{% raw %}LONG{% endraw %}{% endfor %}{% endset %}{{ x | length }}",
        "{% macro m() %}LONG{% endmacro %}{% set x %}{% for a in v | fromjson %}{{ m() }}{% endfor %}{% endset %}{{ x }}",
    ] {
        let source = source.replace("LONG", &long);
        let error = render(&source, &row).expect_err(&source);
        assert!(matches!(error, Unprintable::TooMuch { .. }), "{source}: {error}");
    }
}

/// A value counts each time it is printed, also by a macro whose text is no longer kept.
// Guarantee: secrets.template-limits
#[test]
fn memory_is_counted_in_total() {
    let nested =
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% else %}{{ v }}{% endif %}{% endmacro %}{{ m(LEVELS) | length }}";
    let value = "-".repeat(5 << 20);
    let printed = |times: usize| render(&nested.replace("LEVELS", &(times - 1).to_string()), &value);
    assert_eq!(printed(6).as_deref(), Ok("5242880"));
    assert!(matches!(printed(7), Err(Unprintable::TooMuch { .. })));
}

/// An escaped value counts as it is kept: six bytes for a quotation mark in HTML, three in a URL.
// Guarantee: secrets.template-limits
#[test]
fn memory_of_escaped_values_is_counted_as_it_is_kept() {
    let source = "{% set x %}{{ v }}{% endset %}{{ x | length }}";
    for (mode, fits) in [(Mode::Html, 5 << 20), (Mode::Url, 10 << 20)] {
        let printed = |quotes: usize| {
            let template = Template::compile_within("key", source, mode, Duration::from_secs(60)).expect("compiles");
            template.render(|_| Some(TemplateValue::Text("\"".repeat(quotes).as_bytes().to_vec().leak())))
        };
        assert!(printed(fits).is_ok(), "{mode:?}");
        assert!(matches!(printed(fits * 5 / 4), Err(Unprintable::TooMuch { .. })), "{mode:?}");
    }
}

/// What looks like a multiplication, and what one is made of, stays what it was.
#[test]
fn operators_are_what_they_were() {
    for (source, printed) in [
        ("{{ 2 * 3 }}{{ 2*3*4 }}{{ 7 // 2 * 2 }}{{ 12 / 4 * 2 }}{{ 2 * 7 % 4 }}", "62466.02"),
        ("{{ 1 + 2 * 3 - 4 * 5 }}{{ -2 * -3 }}{{ 2 * -3 ** 2 }}{{ 2 ** 3 * 2 }}", "-1361816"),
        (
            "{{ 'a' ~ 2 * 2 ~ 'b' }}{{ 'ab' * 3 }}{{ 2 * 'x' }}{{ [1] * 2 }}{{ (1, 2) * 2 }}",
            "a4babababxx[1,1][1,2,1,2]",
        ),
        ("{{ 2 * v | int }}{{ v | int * 3 }}{{ (v | int) * (2 * (3 * 4)) }}", "1015120"),
        ("{{ 2 * 3 == 6 and 2 * 2 < 5 or not 2 * 3 in [6] }}{{ 6 if 2 * 3 > 5 else 2 * 9 }}", "true6"),
        ("{{ 3 * 2 is even }}{{ [2 * 3, 4 * 5][1 * 1] }}{{ {'a*b': 2 * 2}['a*b'] }}{{ '2 * 3' }}", "32042 * 3"),
        ("{%- set x = 2 * 3 -%} {{- x * 2 -}} {% set a, b = 2 * 2, 3 * 3 %}{{ a }}{{ b }}{# 2 * 3 #}", "1249"),
        (
            "{% macro m(a, b=2 * 3) %}{{ a * b }}{% endmacro %}{{ m(2 * 1) }}{{ m(*[1, 2 * 2]) }}{{ m(**{'a': 5}) }}",
            "12430",
        ),
        ("{{ 1e-1 * 2 }}{{ 5 - 2 * 2 }}{{ (2 * 2, [2 * 3]) }}{{ - 2 * 2 }}", "0.21[4,[6]]-4"),
        (
            "{% for a in [1] * 3 if a * 2 == 2 %}{{ loop.index * 2 }}{% endfor %}{% if 2 * 1 %}y{% elif 1 * 1 %}n{% endif %}",
            "246y",
        ),
    ] {
        assert_eq!(render(source, "5").as_deref(), Ok(printed), "{source}");
    }
}

/// One expression of a grammar in which operators meet whatever can stand beside them.
fn drawn(random: &mut fastrand::Rng, depth: u32) -> String {
    let leaf = [
        "1", "2", "7", "0.5", "1e-1", "'a*b'", "\"x\"", "v", "[1, 2]", "(1, 2)", "true", "none", "d.in", "d['if']",
        "u", "d.u", "block", "set", "1e+2", "0x1e-5",
    ];
    if depth == 0 || random.u8(0..8) == 0 {
        return leaf[random.usize(0..leaf.len())].to_owned();
    }
    let gap = ["", " "][random.usize(0..2)];
    let mut one = || drawn(random, depth - 1);
    let (a, b, c) = (one(), one(), one());
    let infix = ["*", "*", "*", "/", "//", "%", "**", "+", "-", "~", "==", "<"];
    match random.u8(0..22) {
        at @ 0..12 => format!("{a}{gap}{}{gap}{b}", infix[usize::from(at)]),
        12 => format!("({a})"),
        13 => format!("-{a}"),
        // Without brackets it is a name where an operand must stand.
        14 => format!("(not {a})"),
        15 => format!("{a} {} {b}", ["and", "or", "in", "not in"][random.usize(0..4)]),
        16 => format!("{a} if {b} else {c}"),
        17 => format!(
            "{a} is{} {}",
            ["", " not"][random.usize(0..2)],
            ["odd", "in [1, 2]", "divisibleby(2)", "string"][random.usize(0..4)]
        ),
        18 => format!("{a}|{}", ["string", "length", "default(2*3)", "int", "list"][random.usize(0..5)]),
        19 => format!("[{a}, {b}]"),
        20 => format!("{{'k': {a}}}['k']"),
        _ => format!("f({a}, b={b}, *[{c}])"),
    }
}

/// The library itself is the second opinion: with and without marks, an expression prints the same or is refused alike.
#[test]
fn drawn_expressions_are_what_they_were() {
    let environment = environment(Mode::Text, Duration::from_secs(60));
    let mut random = fastrand::Rng::with_seed(23);
    let mut printed = 0;
    for _ in 0..5_000 {
        let expression = drawn(&mut random, 3);
        let source = format!(
            "{{% macro f(a, b=1, c=2) %}}{{{{ a }}}}{{% endmacro %}}{{% set y = {expression} %}}{{{{- y ~ ({expression}) -}}}}"
        );
        let row = || minijinja::context! { v => 3, block => 2, set => "s", d => minijinja::context! { r#in => 4, r#if => 5 } };
        let result = |source: &str| environment.render_str(source, row()).map_err(|error| error.kind());
        let plain = result(&source);
        printed += u32::from(plain.is_ok());
        if plain == Err(ErrorKind::SyntaxError) {
            assert!(Template::compile("key", &source, Mode::Text).is_err(), "{expression}");
            continue;
        }
        assert_eq!(result(&marks::marked(&source)).ok(), plain.ok(), "{expression}");
    }
    assert!(printed > 500, "{printed} of 5000 can be printed");
}
