//! A consumer of records whose schemas are in a registry: a client of another project, which finds each schema by the id in the record and
//! has none of the relay's code.

use schema_registry_converter::async_impl::avro::AvroDecoder;
use schema_registry_converter::async_impl::json::JsonDecoder;
use schema_registry_converter::async_impl::proto_decoder::ProtoDecoder;
use schema_registry_converter::async_impl::schema_registry::SrSettings;
use serde_json::Value;

/// See the module.
pub struct Decoder {
    avro: AvroDecoder,
    protobuf: ProtoDecoder,
    json: JsonDecoder,
}

impl Decoder {
    /// Of the registry at this address, with a user and password where it wants them.
    pub fn new(url: &str, user: Option<(&str, &str)>) -> Self {
        let mut settings = SrSettings::new_builder(url.to_owned());
        settings.no_proxy();
        if let Some((user, password)) = user {
            settings.set_basic_authorization(user, Some(password));
        }
        let settings = settings.build().unwrap();
        Self {
            avro: AvroDecoder::new(settings.clone()),
            protobuf: ProtoDecoder::new(settings.clone()),
            json: JsonDecoder::new(settings),
        }
    }

    /// As JSON: bytes are lists of numbers, dates and instants numbers.
    pub async fn avro(&self, record: &[u8]) -> Value {
        Value::try_from(self.avro.decode(Some(record)).await.unwrap().value).unwrap()
    }

    /// As the format's own JSON.
    pub async fn protobuf(&self, record: &[u8]) -> Value {
        match self.protobuf.decode(Some(record)).await.unwrap() {
            prost_reflect::Value::Message(message) => serde_json::to_value(&message).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The document, which is also held against its schema.
    pub async fn json(&self, record: &[u8]) -> Value {
        let decoded = self.json.decode(Some(record)).await.unwrap().expect("a record");
        self.json.validate(&decoded.schema, &decoded.value).unwrap();
        decoded.value
    }
}

/// The id in a record.
pub fn id(record: &[u8]) -> u32 {
    assert_eq!(record[0], 0, "the magic byte: {record:?}");
    u32::from_be_bytes(record[1..5].try_into().unwrap())
}

/// `[schema_registry]` of an address, with more lines.
pub fn section(url: &str, more: &str) -> String {
    format!("[schema_registry]\nurl = \"{url}\"\nrefresh = \"1s\"\n{more}\n")
}

/// A relay of `public.bookings` to a topic in one of the formats; `more` is added below `[[relay]]`, `sink` and `format` to theirs.
pub fn relay(topic: &str, word: &str, (more, sink, format): (&str, &str, &str)) -> String {
    format!(
        "[[relay]]\nname = \"{topic}\"\n{more}\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.kafka]\n\
         topic = \"{topic}\"\nkey = \"customer\"\nformat = \"{word}\"\n{sink}\n[relay.sink.kafka.{word}]\n{format}\n"
    )
}

/// `id` and `customer` of `public.bookings`, its instant, and its payload, which may be missing.
pub const BOOKING: &str = r#"{"type":"record","name":"Booking","namespace":"org.example","fields":[
    {"name":"id","type":"long"},{"name":"created_at","type":{"type":"long","logicalType":"timestamp-micros"}},
    {"name":"customer","type":"string"},{"name":"payload","type":["null","string"],"default":null}]}"#;

/// The same with a column more.
pub const BOOKING_2: &str = r#"{"type":"record","name":"Booking","namespace":"org.example","fields":[
    {"name":"id","type":"long"},{"name":"created_at","type":{"type":"long","logicalType":"timestamp-micros"}},
    {"name":"customer","type":"string"},{"name":"payload","type":["null","string"],"default":null},
    {"name":"seats","type":["null","int"],"default":null}]}"#;
