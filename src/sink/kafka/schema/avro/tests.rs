//! What is written is read again by apache-avro's own reader, which has no line of the writer.

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;

use super::*;

mod whole;

fn avro(schema: &str) -> Avro {
    Avro::new(schema, &[], false).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn encoded(avro: &Avro, row: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    avro.encode(row.as_bytes(), usize::MAX, &mut out).map(|()| out).map_err(|misfit| misfit.to_string())
}

fn read(schema: &str, bytes: &[u8]) -> Value {
    let schema = Schema::parse_str(schema).expect("a schema");
    let mut rest = bytes;
    let reader = GenericDatumReader::builder(&schema).build().expect("a reader");
    let value = reader.read_value(&mut rest).expect("readable");
    assert!(rest.is_empty(), "{} bytes more than the value", rest.len());
    value
}

/// A record with one field.
fn record(of_type: &str) -> String {
    format!("{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{{\"name\":\"f\",\"type\":{of_type}}}]}}")
}

fn row(value: &str) -> String {
    format!("{{\"f\":{value}}}")
}

fn field(of_type: &str, value: &str) -> Value {
    let schema = record(of_type);
    let bytes = encoded(&avro(&schema), &row(value)).unwrap_or_else(|error| panic!("{of_type} {value}: {error}"));
    let Value::Record(mut fields) = read(&schema, &bytes) else { panic!("no record") };
    fields.remove(0).1
}

fn refused(of_type: &str, value: &str) -> String {
    let said = encoded(&avro(&record(of_type)), &row(value)).expect_err(value);
    assert!(said.starts_with("field f"), "{said}");
    said
}

/// A logical type of another one.
fn logical(of: &str, name: &str) -> String {
    format!("{{\"type\":\"{of}\",\"logicalType\":\"{name}\"}}")
}

fn decimal(of: &str, precision: u32, scale: u32) -> String {
    format!("{{{of},\"logicalType\":\"decimal\",\"precision\":{precision},\"scale\":{scale}}}")
}

#[test]
fn numbers_keep_to_the_range_of_their_type() {
    for (value, number) in
        [("0", 0), ("-1", -1), ("2147483647", i32::MAX), ("-2147483648", i32::MIN), ("5.00", 5), ("1e3", 1000)]
    {
        assert_eq!(field("\"int\"", value), Value::Int(number));
    }
    for (value, number) in [
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("9007199254740993", 9_007_199_254_740_993),
    ] {
        assert_eq!(field("\"long\"", value), Value::Long(number));
    }
    for value in ["2147483648", "-2147483649", "1.5", "1e10", "\"1\"", "true", "null", "[]"] {
        refused("\"int\"", value);
    }
    for value in ["9223372036854775808", "1e19", "0.1", "\"9\""] {
        refused("\"long\"", value);
    }
    assert_eq!(refused("\"long\"", "0.1"), "field f: the number is not a whole number of 64 bits");
    assert_eq!(field("\"double\"", "-1.5e300"), Value::Double(-1.5e300));
    assert_eq!(field("\"float\"", "0.1"), Value::Float(0.1));
    assert_eq!(field("\"double\"", "\"-Infinity\""), Value::Double(f64::NEG_INFINITY));
    assert!(matches!(field("\"float\"", "\"NaN\""), Value::Float(number) if number.is_nan()));
    for value in ["1e999", "\"1.5\" ", "\"nan\"", "true", "null"] {
        let said = encoded(&avro(&record("\"double\"")), &row(value));
        assert_eq!(said.is_err(), value != "\"1.5\" ", "{value}: {said:?}");
    }
    refused("\"float\"", "1e39");
}

#[test]
fn texts_are_texts_and_what_is_none_is_written_as_it_is() {
    for (value, text) in [
        ("\"ü\\n\\u20ac\"", "ü\n€"),
        ("\"\"", ""),
        ("12345678901234567890.10", "12345678901234567890.10"),
        ("true", "true"),
        ("{\"a\" :[1.10]}", "{\"a\" :[1.10]}"),
    ] {
        assert_eq!(field("\"string\"", value), Value::String(text.to_owned()));
    }
    assert_eq!(refused("\"string\"", "null"), "field f: a text is needed, the row has null");
    refused("\"string\"", "\"\\ud800\"");
    assert_eq!(field("\"boolean\"", "true"), Value::Boolean(true));
    refused("\"boolean\"", "\"true\"");
    refused("\"boolean\"", "1");
    assert_eq!(field("\"null\"", "null"), Value::Null);
    refused("\"null\"", "0");
}

#[test]
fn bytes_are_those_of_postgresql_or_base64() {
    let fixed = "{\"type\":\"fixed\",\"name\":\"F\",\"size\":3}";
    for value in ["\"\\\\x00ff0a\"", "\"AP8K\""] {
        assert_eq!(field("\"bytes\"", value), Value::Bytes(vec![0, 255, 10]));
        assert_eq!(field(fixed, value), Value::Fixed(3, vec![0, 255, 10]));
    }
    for value in ["\"\\\\x0\"", "\"ä\"", "1", "null", "[0]"] {
        refused("\"bytes\"", value);
    }
    assert_eq!(refused(fixed, "\"\\\\x00ff\""), "field f: 3 bytes are needed, the row has 2");
}

#[test]
fn decimals_lose_no_digit() {
    let [bytes, fixed] =
        [decimal("\"type\":\"bytes\"", 20, 2), decimal("\"type\":\"fixed\",\"name\":\"D\",\"size\":9", 20, 2)];
    for (value, unscaled) in [
        ("0", 0_i128),
        ("1.10", 110),
        ("-0.01", -1),
        ("123456789012345678.90", 12_345_678_901_234_567_890),
        ("-99999999.99", -9_999_999_999),
        ("\"1.5\"", 150),
        ("1e2", 10_000),
    ] {
        for of_type in [&bytes, &fixed] {
            let Value::Decimal(decimal) = field(of_type, value) else { panic!("no decimal") };
            let read = Vec::<u8>::try_from(decimal).expect("bytes");
            let sign = if read.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
            let mut whole = [sign; 16];
            whole[16 - read.len()..].copy_from_slice(&read);
            assert_eq!(i128::from_be_bytes(whole), unscaled, "{of_type} {value}");
        }
    }
    let said = "field f: the number has 3 digits behind the point, the schema's decimal has 2";
    assert_eq!(refused(&bytes, "1.125"), said);
    let said = "field f: the number has 22 digits at the scale of 2, the schema's decimal has 20";
    assert_eq!(refused(&bytes, "1e19"), said);
    for value in ["\"NaN\"", "\"Infinity\"", "null", "true", "\"\"", "\"1,5\""] {
        refused(&bytes, value);
    }
    refused(&decimal("\"type\":\"fixed\",\"name\":\"D\",\"size\":1", 2, 0), "-129");
    assert!(Avro::new(&record(&decimal("\"type\":\"fixed\",\"name\":\"D\",\"size\":1", 2, 0)), &[], false).is_ok());
}

#[test]
fn logical_types_are_read_from_texts_of_postgresql_and_from_numbers() {
    assert_eq!(field(&logical("int", "date"), "\"2026-02-28\""), Value::Date(20_512));
    assert_eq!(field(&logical("int", "date"), "-1"), Value::Date(-1));
    assert_eq!(field(&logical("int", "time-millis"), "\"01:02:03.5006\""), Value::TimeMillis(3_723_500));
    assert_eq!(field(&logical("long", "time-micros"), "\"23:59:59.999999\""), Value::TimeMicros(86_399_999_999));
    let at = "\"2026-11-21T08:00:00.123456+05:30\"";
    assert_eq!(field(&logical("long", "timestamp-millis"), at), Value::TimestampMillis(1_795_228_200_123));
    assert_eq!(field(&logical("long", "timestamp-micros"), at), Value::TimestampMicros(1_795_228_200_123_456));
    assert_eq!(field(&logical("long", "timestamp-nanos"), at), Value::TimestampNanos(1_795_228_200_123_456_000));
    let clock = "\"2026-11-21T02:30:00.123456\"";
    assert_eq!(field(&logical("long", "timestamp-micros"), clock), Value::TimestampMicros(1_795_228_200_123_456));
    assert_eq!(
        field(&logical("long", "local-timestamp-millis"), clock),
        Value::LocalTimestampMillis(1_795_228_200_123)
    );
    assert_eq!(field(&logical("long", "local-timestamp-micros"), "7"), Value::LocalTimestampMicros(7));
    let uuid = "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"";
    assert!(matches!(field(&logical("string", "uuid"), uuid), Value::Uuid(read) if format!("\"{read}\"") == uuid));
    let fixed = "{\"type\":\"fixed\",\"name\":\"U\",\"size\":16,\"logicalType\":\"uuid\"}";
    assert!(matches!(field(fixed, uuid), Value::Uuid(read) if format!("\"{read}\"") == uuid));
    for (of_type, value) in [
        (logical("int", "date"), "\"infinity\""),
        (logical("int", "date"), "\"0044-03-15 BC\""),
        (logical("int", "date"), "\"2026-02-28T00:00:00\""),
        (logical("int", "date"), "2147483648"),
        (logical("int", "time-millis"), "\"24:00:00\""),
        (logical("int", "time-millis"), "86400000"),
        (logical("long", "time-micros"), "\"12:00:00+02\""),
        (logical("long", "timestamp-micros"), "\"-infinity\""),
        (logical("long", "timestamp-micros"), "true"),
        (logical("long", "timestamp-nanos"), "\"9999-01-01T00:00:00Z\""),
        (logical("long", "local-timestamp-micros"), at),
        (logical("string", "uuid"), "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1\""),
        (logical("string", "uuid"), "\"a0eebc999c0b4ef8bb6d6bb9bd380a11    \""),
    ] {
        refused(&of_type, value);
    }
}

#[test]
fn enums_lists_maps_and_records_hold_what_the_row_has() {
    let shades = "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"DARK\",\"LIGHT\"]}";
    assert_eq!(field(shades, "\"LIGHT\""), Value::Enum(1, "LIGHT".to_owned()));
    assert_eq!(refused(shades, "\"light\""), "field f: the text is none of the enum's symbols");
    let list = "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":\"int\"}}";
    let of = |numbers: &[i32]| Value::Array(numbers.iter().map(|number| Value::Int(*number)).collect());
    assert_eq!(field(list, "[[1,2],[],[-3]]"), Value::Array(vec![of(&[1, 2]), of(&[]), of(&[-3])]));
    assert_eq!(refused(list, "[[1],[1,null]]"), "field f[1][1]: a whole number of 32 bits is needed, the row has null");
    let map = "{\"type\":\"map\",\"values\":\"string\"}";
    let members = [("a".to_owned(), Value::String("2".to_owned())), ("ü".to_owned(), Value::String(String::new()))];
    assert_eq!(
        field(map, "{\"a\":\"1\",\"ü\":\"\",\"a\":\"2\"}"),
        Value::Map(members.into()),
        "the last one of a name counts"
    );
    refused(map, "[]");
    let nested = "{\"type\":\"record\",\"name\":\"N\",\"fields\":[{\"name\":\"zip\",\"type\":\"int\"}]}";
    assert_eq!(field(nested, "{\"zip\":1,\"zip\":2}"), Value::Record(vec![("zip".to_owned(), Value::Int(2))]));
    assert_eq!(
        refused(nested, "{\"zip\":\"1\"}"),
        "field f.zip: a whole number of 32 bits is needed, the row has a text"
    );
}

#[test]
fn union_takes_the_branch_that_the_value_says() {
    let union = |branch: u32, value: Value| Value::Union(branch, Box::new(value));
    let optional = "[\"null\",\"string\"]";
    assert_eq!(field(optional, "null"), union(0, Value::Null));
    assert_eq!(field(optional, "1.10"), union(1, Value::String("1.10".to_owned())));
    let date = format!("[{},\"null\"]", logical("int", "date"));
    assert_eq!(field(&date, "\"1970-01-02\""), union(0, Value::Date(1)));
    assert_eq!(refused(&date, "\"soon\""), "field f: the text is no date of the years 1 to 9999");
    let several = "[\"null\",\"boolean\",\"long\",\"string\",{\"type\":\"array\",\"items\":\"int\"},{\"type\":\"map\",\"values\":\"int\"}]";
    assert_eq!(field(several, "true"), union(1, Value::Boolean(true)));
    assert_eq!(field(several, "7"), union(2, Value::Long(7)));
    assert_eq!(field(several, "\"7\""), union(3, Value::String("7".to_owned())));
    assert_eq!(field(several, "[]"), union(4, Value::Array(Vec::new())));
    assert_eq!(field(several, "{}"), union(5, Value::Map(std::collections::HashMap::new())));
    assert_eq!(refused("[\"int\",\"string\"]", "null"), "field f: no branch of its union takes null");
    for ambiguous in [
        "[\"string\",\"bytes\"]",
        "[\"int\",\"double\"]",
        "[\"null\",\"string\",{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]}]",
        "[{\"type\":\"map\",\"values\":\"int\"},{\"type\":\"record\",\"name\":\"N\",\"fields\":[]}]",
        "[\"string\",{\"type\":\"int\",\"logicalType\":\"date\"}]",
    ] {
        let said = Avro::new(&record(ambiguous), &[], false).expect_err("refused");
        assert!(said.contains("field f of record R: more than one branch of its union takes"), "{said}");
    }
}
