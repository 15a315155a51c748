//! Messages of made-up rows: bytes by hand from the encoding's documentation, and what prost-reflect reads from them.

use prost_reflect::{DynamicMessage, Value};

use super::*;

fn of(schema: &str, message: Option<&str>) -> Protobuf {
    Protobuf::new(schema, &[], message, false).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn encoded(schema: &Protobuf, row: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    schema.encode(row.as_bytes(), &mut out).map(|()| out).map_err(|misfit| misfit.to_string())
}

/// A message with one field of the number 1.
fn field(of_type: &str) -> Protobuf {
    let imports =
        ["timestamp", "duration", "struct", "wrappers"].map(|name| format!("import \"google/protobuf/{name}.proto\";"));
    let shade = "enum Shade { DARK = 0; LIGHT = 1; }";
    of(&format!("syntax = \"proto3\"; {} {shade} message M {{ {of_type} f = 1; }}", imports.concat()), None)
}

fn read(of_type: &str, value: &str) -> Value {
    let schema = field(of_type);
    let bytes =
        encoded(&schema, &format!("{{\"f\":{value}}}")).unwrap_or_else(|error| panic!("{of_type} {value}: {error}"));
    assert_eq!(bytes[0], 0, "the first message");
    let message = DynamicMessage::decode(schema.message.clone(), &bytes[1..]).expect("readable");
    assert_eq!(message.unknown_fields().count(), 0);
    message.get_field_by_name("f").expect("a field").into_owned()
}

fn refused(of_type: &str, value: &str) -> String {
    let said = encoded(&field(of_type), &format!("{{\"f\":{value}}}")).expect_err(value);
    assert!(said.starts_with("field f"), "{said}");
    said
}

#[test]
fn bytes_are_those_of_the_encodings_own_examples() {
    // "Test1" and "Test2" of protobuf.dev/programming-guides/encoding.
    assert_eq!(encoded(&field("int32"), "{\"f\":150}"), Ok(vec![0, 0x08, 0x96, 0x01]));
    let test2 = of("syntax = \"proto3\"; message Test2 { string b = 2; }", None);
    let expected = [&[0, 0x12, 0x07][..], b"testing"].concat();
    assert_eq!(encoded(&test2, "{\"b\":\"testing\"}"), Ok(expected));
    assert_eq!(encoded(&test2, "{}"), Ok(vec![0]));
    assert_eq!(encoded(&test2, "{\"b\":null}"), Ok(vec![0]));
}

#[test]
fn numbers_keep_to_the_range_of_their_type() {
    for (of_type, value, read_as) in [
        ("int32", "-2147483648", Value::I32(i32::MIN)),
        ("sint32", "\"7\"", Value::I32(7)),
        ("int64", "9223372036854775807", Value::I64(i64::MAX)),
        ("sfixed64", "\"-9223372036854775808\"", Value::I64(i64::MIN)),
        ("uint32", "4294967295", Value::U32(u32::MAX)),
        ("fixed64", "18446744073709551615", Value::U64(u64::MAX)),
        ("double", "\"Infinity\"", Value::F64(f64::INFINITY)),
        ("float", "1.50", Value::F32(1.5)),
        ("bool", "true", Value::Bool(true)),
        ("Shade", "\"LIGHT\"", Value::EnumNumber(1)),
        ("Shade", "7", Value::EnumNumber(7)),
    ] {
        assert_eq!(read(of_type, value), read_as, "{of_type} {value}");
    }
    for (of_type, value) in [
        ("int32", "2147483648"),
        ("int32", "1.5"),
        ("int32", "true"),
        ("int64", "9223372036854775808"),
        ("int64", "\"\""),
        ("uint32", "-1"),
        ("uint64", "18446744073709551616"),
        ("double", "1e999"),
        ("float", "\"x\""),
        ("bool", "\"true\""),
        ("Shade", "\"light\""),
        ("Shade", "1.5"),
        ("repeated int32", "1"),
        ("map<string, int32>", "[]"),
    ] {
        refused(of_type, value);
    }
}

#[test]
fn texts_bytes_and_times_are_as_postgresql_writes_them() {
    for (value, text) in
        [("\"ü\\n\"", "ü\n"), ("1234567890123456789012.10", "1234567890123456789012.10"), ("[1, {}]", "[1, {}]")]
    {
        assert_eq!(read("string", value), Value::String(text.to_owned()));
    }
    for value in ["\"\\\\x00ff0a\"", "\"AP8K\""] {
        assert_eq!(read("bytes", value), Value::Bytes(vec![0, 255, 10].into()));
    }
    refused("bytes", "\"\\\\x0\"");
    let of_time = |value: &str| match read("google.protobuf.Timestamp", value) {
        Value::Message(message) => {
            ["seconds", "nanos"].map(|name| message.get_field_by_name(name).expect("a field").into_owned())
        }
        other => panic!("{other:?}"),
    };
    let expected = [Value::I64(1_795_228_200), Value::I32(123_456_000)];
    for value in
        ["\"2026-11-21T08:00:00.123456+05:30\"", "\"2026-11-21T02:30:00.123456\"", "\"2026-11-21T02:30:00.123456Z\""]
    {
        assert_eq!(of_time(value), expected);
    }
    assert_eq!(of_time("\"1969-12-31T23:59:59.5Z\""), [Value::I64(-1), Value::I32(500_000_000)]);
    for value in ["\"infinity\"", "7", "{}", "\"0001-01-01T00:00:00+01:00\""] {
        refused("google.protobuf.Timestamp", value);
    }
    assert!(matches!(read("google.protobuf.Duration", "\"1.5s\""), Value::Message(_)));
    let said = refused("google.protobuf.Duration", "\"secret\"");
    assert_eq!(said, "field f: a text is no JSON of google.protobuf.Duration");
}

#[test]
fn wrappers_structs_lists_and_maps_hold_what_the_row_has() {
    let value = |message: Value| match message {
        Value::Message(message) => message.get_field_by_name("value").expect("a field").into_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(value(read("google.protobuf.Int64Value", "0")), Value::I64(0));
    assert_eq!(value(read("google.protobuf.BytesValue", "\"\\\\x01\"")), Value::Bytes(vec![1].into()));
    assert_eq!(encoded(&field("google.protobuf.Int64Value"), "{\"f\":null}"), Ok(vec![0]));
    assert!(encoded(&field("google.protobuf.Value"), "{\"f\":null}").expect("null").len() > 1, "null is a value of it");
    assert!(matches!(read("google.protobuf.Struct", "{\"a\":[1,null,{\"b\":true}]}"), Value::Message(_)));
    let list = [1, 2].map(Value::I32).to_vec();
    assert_eq!(read("repeated int32", "[1,2]"), Value::List(list));
    assert_eq!(
        refused("repeated int32", "[1,null]"),
        "field f[1]: a whole number of 32 bits is needed, the row has null"
    );
    let map = [(prost_reflect::MapKey::I32(-1), Value::Bool(true))].into();
    assert_eq!(read("map<int32, bool>", "{\"-1\":true}"), Value::Map(map));
    refused("map<int32, bool>", "{\"a\":true}");
    let said = refused("map<int32, bool>", "{\"1\":true,\"01\":false}");
    assert_eq!(said, "field f.01: the row has this key under another name, too");
    // A name that comes twice is one name, of which the last value counts.
    let map = [(prost_reflect::MapKey::I32(1), Value::Bool(false))].into();
    assert_eq!(read("map<int32, bool>", "{\"1\":true,\"1\":false}"), Value::Map(map));
}

const BOOKING: &str = "syntax = \"proto3\"; package org.example;
    message First {}
    message Booking {
        int64 id = 1;
        string customer_name = 2;
        map<string, string> labels = 3;
        oneof pay { string card = 4; bool cash = 5; }
        optional int32 rank = 6;
        message Place { string city = 1; message Deep { int32 n = 1; } }
        Place place = 7;
        Booking parent = 8;
    }";

#[test]
fn message_is_found_by_its_name_and_its_place_in_the_file() {
    let row = "{\"id\":7,\"customerName\":\"a\",\"place\":{\"city\":\"b\"},\"card\":null,\"cash\":false,\"rank\":0}";
    let booking = of(BOOKING, Some("org.example.Booking"));
    let bytes = encoded(&booking, row).expect("fits");
    // One index, and it is 1.
    assert_eq!(bytes[..2], [2, 2]);
    let same = encoded(&booking, &row.replace("customerName", "customer_name")).expect("fits");
    assert_eq!(bytes, same);
    let message = DynamicMessage::decode(booking.message.clone(), &bytes[2..]).expect("readable");
    assert!(message.has_field_by_name("cash") && message.has_field_by_name("rank"), "values that are set, and zero");
    assert_eq!(of(BOOKING, None).name(), "org.example.First");
    assert_eq!(of(BOOKING, None).indexes, [0]);
    // Two and three indexes; the message of a map is not counted.
    assert_eq!(of(BOOKING, Some("org.example.Booking.Place")).indexes, [4, 2, 0]);
    assert_eq!(of(BOOKING, Some("org.example.Booking.Place.Deep")).indexes, [6, 2, 0, 0]);
    let said = Protobuf::new(BOOKING, &[], Some("Booking"), false).expect_err("no package");
    assert!(said.contains("no message Booking; it has org.example.First, org.example.Booking"), "{said}");
}

#[test]
fn misfits_name_their_field() {
    let booking = of(BOOKING, Some("org.example.Booking"));
    for (row, said) in [
        ("{\"colour\":1}", "field colour: message org.example.Booking of the schema has no such field"),
        (
            "{\"place\":{\"zip\":1}}",
            "field place.zip: message org.example.Booking.Place of the schema has no such field",
        ),
        ("{\"card\":\"a\",\"cash\":true}", "field cash: the row has card, too, of which the schema takes one"),
        (
            "{\"customer_name\":\"a\",\"customerName\":\"a\"}",
            "field customerName: the row has customer_name, too, which is the same field of the schema",
        ),
        ("{\"labels\":{\"a\":null}}", "field labels.a: a text is needed, the row has null"),
        ("[]", "an object is needed, the row has a list"),
        ("{", "the payload is no JSON"),
    ] {
        assert_eq!(encoded(&booking, row).expect_err(row), said);
    }
    let lenient = Protobuf::new(BOOKING, &[], Some("org.example.Booking"), true).expect("a schema");
    assert_eq!(encoded(&lenient, "{\"colour\":1,\"place\":{\"zip\":1}}"), encoded(&booking, "{\"place\":{}}"));
    let deep = "{\"parent\":".repeat(10_000) + "null" + &"}".repeat(10_000);
    assert!(encoded(&booking, &deep).expect_err("deep").contains("more than 64 messages inside each other"));
}

#[test]
fn fields_that_proto2_requires_must_be_there() {
    let schema = of(
        "syntax = \"proto2\"; message M { required int32 a = 1; optional int32 b = 2; optional group G = 3 { } \
                     message N { } }",
        None,
    );
    assert_eq!(
        encoded(&schema, "{\"b\":1}").expect_err("a"),
        "field a: missing in the row, and required by the schema"
    );
    assert_eq!(schema.fields().iter().filter(|field| field.is_required).count(), 1);
    let text = "syntax = \"proto2\"; message M { optional group G = 3 { } message N { } }";
    assert_eq!(of(text, Some("M.N")).indexes, [4, 0, 0], "a group is not counted");
}

#[test]
fn imports_are_the_registrys_references_and_googles_own() {
    let main = "syntax = \"proto3\"; import \"place.proto\"; import \"google/protobuf/timestamp.proto\"; message M { b.P p = 1; }";
    let place = "syntax = \"proto3\"; package b; message P { int32 n = 1; }";
    let schema = Protobuf::new(main, &[("place.proto", place)], None, false).expect("found");
    assert_eq!(encoded(&schema, "{\"p\":{\"n\":1}}"), Ok(vec![0, 0x0a, 2, 8, 1]));
    assert!(Protobuf::new(main, &[("place.proto", place)], Some("b.P"), false).is_err(), "it is of another file");
    for (text, word) in
        [(main, "place.proto"), ("syntax = \"proto3\";", "no message"), ("message {", "no Protobuf schema")]
    {
        let said = Protobuf::new(text, &[], None, false).expect_err(text);
        assert!(said.contains(word), "{said}");
    }
}
