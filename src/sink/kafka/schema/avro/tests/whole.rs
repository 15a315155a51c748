//! Rows as a whole: defaults, columns that the schema does not have, types of other schemas, hostile rows.

use super::*;

const BOOKING: &str = r#"{"type":"record","name":"Booking","namespace":"org.example","fields":[
    {"name":"id","type":"long"},
    {"name":"note","type":["null","string"],"default":null},
    {"name":"kind","type":"string","default":"new \u00fc"},
    {"name":"tags","type":{"type":"array","items":"string"},"default":[]},
    {"name":"raw","type":"bytes","default":"\u00ff\u0000"},
    {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":5,"scale":2},"default":"\u0001"},
    {"name":"at","type":{"type":"record","name":"Place","fields":[
        {"name":"x","type":"int","default":1},{"name":"y","type":["null","org.example.Place"],"default":null}]},
     "default":{"x":7}}]}"#;

#[test]
fn field_that_is_missing_has_the_schemas_default_and_null_is_no_missing_field() {
    let avro = avro(BOOKING);
    let Value::Record(fields) = read(BOOKING, &encoded(&avro, "{\"id\":1}").expect("fits")) else {
        panic!("no record")
    };
    let value = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
    assert_eq!(value("note"), Some(Value::Union(0, Box::new(Value::Null))));
    assert_eq!(value("kind"), Some(Value::String("new ü".to_owned())));
    assert_eq!(value("raw"), Some(Value::Bytes(vec![255, 0])));
    let place = vec![("x".to_owned(), Value::Int(7)), ("y".to_owned(), Value::Union(0, Box::new(Value::Null)))];
    assert_eq!(value("at"), Some(Value::Record(place)));
    assert_eq!(encoded(&avro, "{}").expect_err("id"), "field id: missing in the row, and the schema has no default");
    let said = encoded(&avro, "{\"id\":1,\"kind\":null}").expect_err("null");
    assert_eq!(said, "field kind: a text is needed, the row has null");
    let wrong = BOOKING.replace("\"default\":{\"x\":7}", "\"default\":{\"x\":\"7\"}");
    assert!(Avro::new(&wrong, &[], false).is_err());
}

#[test]
fn column_that_the_schema_does_not_have_is_refused_or_left_out() {
    let row = "{\"id\":1,\"colour\":{\"deep\":[null]},\"at\":{\"z\":1}}";
    let said = encoded(&avro(BOOKING), row).expect_err("unknown");
    assert_eq!(said, "field colour: record org.example.Booking of the schema has no such field");
    let lenient = Avro::new(BOOKING, &[], true).expect("a schema");
    let [with, without] = [row, "{\"id\":1,\"at\":{}}"].map(|row| encoded(&lenient, row).expect("fits"));
    assert_eq!(with, without);
    assert_eq!(avro(BOOKING).name(), Some("org.example.Booking"));
    let fields = avro(BOOKING).fields().expect("a record");
    let required: Vec<_> = fields.iter().filter(|field| field.is_required).map(|field| field.name.as_str()).collect();
    assert_eq!((fields.len(), required), (7, vec!["id"]));
}

#[test]
fn types_of_other_schemas_are_found_by_their_names() {
    let main = r#"{"type":"record","name":"B","namespace":"a","fields":[
        {"name":"p","type":"b.P"},{"name":"q","type":["null","P"],"default":null},{"name":"s","type":"b.S"}]}"#;
    let place = r#"{"type":"record","name":"P","namespace":"b","fields":[{"name":"s","type":"S"}]}"#;
    let shade = r#"{"type":"enum","name":"b.S","symbols":["D","L"]}"#;
    let same = r#"{"type":"record","name":"a.P","fields":[{"name":"n","type":"int"}]}"#;
    let avro = Avro::new(main, &[place, shade, same], false).expect("found");
    let row = "{\"p\":{\"s\":\"L\"},\"q\":{\"n\":-1},\"s\":\"D\"}";
    assert_eq!(encoded(&avro, row), Ok(vec![2, 2, 1, 0]));
    assert!(Avro::new(main, &[place, same], false).expect_err("no S").contains('S'));
}

#[test]
fn schemas_that_cannot_be_written_by_are_refused_as_a_whole() {
    for (schema, word) in [
        ("{\"type\":\"record\"", "no Avro schema"),
        ("{\"type\":\"rekord\",\"name\":\"R\"}", "no Avro schema"),
        (
            &record("{\"type\":\"fixed\",\"name\":\"D\",\"size\":12,\"logicalType\":\"duration\"}"),
            "duration is not supported",
        ),
        (&record("\"Unknown\""), "Unknown"),
    ] {
        let said = Avro::new(schema, &[], false).expect_err(schema);
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(avro("\"string\"").name(), None);
    assert_eq!(encoded(&avro("\"string\""), "\"a\""), Ok(vec![2, b'a']));
}

#[test]
fn hostile_rows_end_in_a_misfit() {
    let list = r#"{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}"#;
    let chain = |links: usize| "{\"next\":".repeat(links) + "null" + &"}".repeat(links);
    assert!(encoded(&avro(list), &chain(20)).is_ok());
    let said = encoded(&avro(list), &chain(10_000)).expect_err("too deep");
    assert!(said.contains("more than 64 values inside each other"), "{said}");
    for row in ["", "null", "[]", "{\"next\":", "\u{0}", "{\"next\":null}}"] {
        assert!(encoded(&avro(list), row).is_err(), "{row:?}");
    }
    let huge = decimal("\"type\":\"fixed\",\"name\":\"D\",\"size\":1000000000000", 2, 0);
    let mut out = Vec::new();
    assert_eq!(avro(&huge).encode(b"1", 1_000, &mut out), Err(Misfit::Large(1_000_000_000_000)));
    // A record of nothing but a default, a million times.
    let many = r#"{"type":"array","items":{"type":"record","name":"D","fields":[{"name":"d","type":"string","default":"xxxxxxxxxxxxxxxx"}]}}"#;
    let rows = format!("[{}{{}}]", "{},".repeat(100_000));
    let mut out = Vec::new();
    assert_eq!(avro(many).encode(rows.as_bytes(), 1_000, &mut out), Err(Misfit::Large(1_000)));
    assert!(out.len() < 2_000);
}
