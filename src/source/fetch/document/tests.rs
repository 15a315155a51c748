//! The bytes of values, names and instants; what is malformed.

use super::*;

fn made(columns: &[(&str, u32)], values: &[Option<&[u8]>]) -> Result<String, Malformed> {
    let document = Document::new(columns.iter().map(|(name, oid)| (*name, *oid, -1)), Style::Row).expect("known types");
    let mut out = b"before".to_vec();
    document.write(|number| Ok::<_, Malformed>(values[number]), MOST_BYTES, &mut out)?;
    Ok(String::from_utf8(out).expect("text"))
}

fn one(of: &Type, value: &[u8]) -> String {
    made(&[("c", of.oid())], &[Some(value)]).expect("well formed")
}

#[test]
fn an_object_has_its_columns_in_order_with_their_names_escaped_and_null_for_null() {
    let columns = [("id", Type::INT8.oid()), ("a \"b\" \\ \n", Type::TEXT.oid()), ("", Type::BOOL.oid())];
    let values = [Some(&[0xff; 8][..]), None, Some(&[1])];
    assert_eq!(made(&columns, &values).expect("well formed"), r#"before{"id":-1,"a \"b\" \\ \n":null,"":true}"#);
}

#[test]
fn what_is_not_made_here_or_is_not_what_its_type_says_is_refused() {
    assert!(Document::new([("x", Type::INT4_ARRAY.oid(), -1)].into_iter(), Style::Row).is_none());
    assert!(Document::new([("x", 4_000_000_000, -1)].into_iter(), Style::Row).is_none());
    assert!(Document::new([].into_iter(), Style::Row).is_none());
    for (of, value) in [
        (Type::BOOL, &b""[..]),
        (Type::INT4, b"123"),
        (Type::INT8, b"1234"),
        (Type::UUID, b"short"),
        (Type::DATE, b"12345"),
        (Type::TIMESTAMPTZ, b"1234"),
        (Type::JSONB, b"\x02{}"),
        (Type::JSONB, b""),
        (Type::NUMERIC, b"\0\x01\0\0\0\0\0\0"),
        (Type::NUMERIC, b"\0\x01\0\0\0\0\0\0\xff\xff"),
        (Type::NUMERIC, b"\0\0\0\0\x12\x34\0\0"),
    ] {
        let refused = made(&[("c", of.oid())], &[Some(value)]);
        assert_eq!(refused, Err(Malformed::Value("\"c\"".to_owned())), "{of} {value:?}");
    }
}

#[test]
fn a_text_that_is_not_well_formed_goes_through_as_it_is() {
    let mut out = Vec::new();
    let document = Document::new([("c", Type::TEXT.oid(), -1)].into_iter(), Style::Row).expect("a known type");
    document
        .write(|_| Ok::<_, Malformed>(Some(&b"\xff\"a"[..])), MOST_BYTES, &mut out)
        .expect("well formed for PostgreSQL");
    assert_eq!(out, b"{\"c\":\"\xff\\\"a\"}");
}

#[test]
fn what_is_no_number_is_a_text() {
    for (sign, text) in [(0xC0, "NaN"), (0xD0, "Infinity"), (0xF0, "-Infinity")] {
        assert_eq!(one(&Type::NUMERIC, &[0, 0, 0, 0, sign, 0, 0, 0]), format!("before{{\"c\":\"{text}\"}}"));
    }
}

#[test]
fn numbers_without_digits_have_the_zeros_of_their_scale() {
    assert_eq!(one(&Type::NUMERIC, b"\0\0\0\0\0\0\0\0"), "before{\"c\":0}");
    assert_eq!(one(&Type::NUMERIC, b"\0\0\0\0\0\0\0\x05"), "before{\"c\":0.00000}");
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        of in proptest::sample::select(vec![
            Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::NUMERIC, Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::UUID,
            Type::DATE, Type::TIMESTAMP, Type::TIMESTAMPTZ, Type::JSON, Type::JSONB,
        ]),
        size in proptest::sample::select(vec![0_usize, 1, 2, 4, 8, 10, 16, 20]),
        bytes: [u8; 20],
    ) {
        let document = Document::new([("c", of.oid(), -1)].into_iter(), Style::Row).expect("a known type");
        let _: Result<usize, Malformed> = document.write(|_| Ok(Some(&bytes[..size])), MOST_BYTES, &mut Vec::new());
    }

    #[test]
    fn a_text_is_escaped_as_serde_json_escapes_it(text in "([ -~]{0,40}|[\\x00-\\x7f\"\\\\é🦀\u{2028}]{0,9}){0,5}") {
        proptest::prop_assert_eq!(
            one(&Type::TEXT, text.as_bytes()),
            format!("before{{\"c\":{}}}", serde_json::to_string(&text).expect("text"))
        );
    }

    #[test]
    fn an_instant_is_written_as_chrono_writes_it(micros in -60_000_000_000_000_000_i64..200_000_000_000_000_000) {
        let at = chrono::DateTime::from_timestamp_micros(micros + 946_684_800_000_000).expect("in chrono's range");
        let whole = at.to_rfc3339_opts(chrono::SecondsFormat::Micros, false);
        let known = match whole.split_once('.') {
            Some((seconds, rest)) => {
                let fraction = rest[..6].trim_end_matches('0');
                format!("{seconds}{}{fraction}+00:00", if fraction.is_empty() { "" } else { "." })
            }
            None => whole,
        };
        proptest::prop_assert_eq!(
            one(&Type::TIMESTAMPTZ, &micros.to_be_bytes()),
            format!("before{{\"c\":\"{known}\"}}")
        );
    }
}

#[test]
fn text_that_would_be_too_long_is_counted_and_not_written() {
    let columns = [("a", Type::TEXT.oid()), ("b", Type::TEXT.oid())];
    let document =
        Document::new(columns.map(|(name, oid)| (name, oid, -1)).into_iter(), Style::Row).expect("known types");
    let long: Vec<u8> = (1..=127).cycle().take(10_000).collect();
    let whole = made(&columns, &[Some(b"x"), Some(&long)]).expect("well formed").len() - "before".len();
    for most in [100, whole - 2] {
        let mut out = Vec::new();
        let value = |number| Ok::<_, Malformed>(Some(if number == 0 { &b"x"[..] } else { &long }));
        let unwritten = document.write(value, most, &mut out).expect("well formed");
        assert_eq!((out.len() + unwritten, out.len()), (whole, r#"{"a":"x","b":}"#.len()), "{most}");
    }
    let mut out = Vec::new();
    let value = |number| Ok::<_, Malformed>(Some(if number == 0 { &b"x"[..] } else { &long }));
    assert_eq!(document.write(value, whole, &mut out), Ok(0));
    assert_eq!(out.len(), whole);
}

#[test]
fn values_of_debezium_have_the_digits_of_their_columns() {
    let written = |of: &Type, modifier: i32, micros: i64| {
        let document = Document::new([("c", of.oid(), modifier)].into_iter(), Style::Debezium).expect("a known type");
        let mut out = Vec::new();
        let value = |_| Ok::<_, Malformed>(Some(&micros.to_be_bytes()[..]).map(|bytes| bytes.to_vec().leak() as &[u8]));
        document.write(value, MOST_BYTES, &mut out).expect("well formed");
        String::from_utf8(out).expect("text")
    };
    for (modifier, zoned, number) in [
        (-1, "00.500000Z", "946684800500000"),
        (6, "00.500000Z", "946684800500000"),
        (4, "00.5000Z", "946684800500000"),
        (3, "00.500Z", "946684800500"),
        (1, "00.5Z", "946684800500"),
        (0, "00Z", "946684800500"),
    ] {
        assert_eq!(written(&Type::TIMESTAMPTZ, modifier, 500_000), format!("{{\"c\":\"2000-01-01T00:00:{zoned}\"}}"));
        assert_eq!(written(&Type::TIMESTAMP, modifier, 500_000), format!("{{\"c\":{number}}}"));
    }
    assert_eq!(written(&Type::TIMESTAMP, -1, i64::MAX - 1), "{\"c\":9224318721654775806}");
    assert_eq!(written(&Type::TIMESTAMP, -1, i64::MAX), "{\"c\":9223372036825200000}");
}
