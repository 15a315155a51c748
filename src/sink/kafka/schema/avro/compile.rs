//! From a schema's text to what rows are written by.

use std::collections::HashMap;

use apache_avro::Schema;
use apache_avro::schema::{InnerDecimalSchema, Name, RecordSchema, UuidSchema};

use super::super::json::Json;
use super::super::moment::Unit;
use super::write::Writer;
use super::{Avro, Field, Node, Record, UuidForm};

/// The most bytes of a default.
const LONGEST_DEFAULT: usize = 1 << 20;

pub(super) fn compile(text: &str, references: &[&str]) -> Result<Avro, String> {
    let parsed = Schema::parse_str_with_list(text, references);
    let (root, others) = parsed.map_err(|error| format!("it is no Avro schema: {error}"))?;
    let mut compiler = Compiler { named: HashMap::new(), numbers: HashMap::new(), records: Vec::new() };
    for schema in others.iter().chain([&root]) {
        compiler.collect(schema);
    }
    let root = compiler.node(&root)?;
    let mut avro = Avro { root, records: compiler.records, ignores_unknown: false };
    write_defaults(&mut avro)?;
    Ok(avro)
}

/// A default is written once, not for each row without the field.
fn write_defaults(avro: &mut Avro) -> Result<(), String> {
    let mut written = Vec::new();
    for (number, record) in avro.records.iter().enumerate() {
        for (place, field) in record.fields.iter().enumerate() {
            let Some(default) = &field.default else { continue };
            let writer = Writer { avro, is_default: true, most: LONGEST_DEFAULT };
            let json = Json::of(default.as_bytes()).ok_or("a default is no JSON")?;
            let mut out = Vec::new();
            writer.value(&field.node, json, 0, &mut out).map_err(|misfit| {
                format!("the default of field {} of record {} does not fit its type: {misfit}", field.name, record.name)
            })?;
            written.push((number, place, out));
        }
    }
    for (number, place, out) in written {
        avro.records[number].fields[place].written = Some(out);
    }
    Ok(())
}

struct Compiler<'a> {
    named: HashMap<String, &'a Schema>,
    /// The numbers of records that were compiled, or begun.
    numbers: HashMap<String, usize>,
    records: Vec<Record>,
}

fn full(name: &Name) -> String {
    name.fullname(None)
}

impl<'a> Compiler<'a> {
    /// Remembers what others may refer to.
    fn collect(&mut self, schema: &'a Schema) {
        if let Some(name) = schema.name().filter(|_| !matches!(schema, Schema::Ref { .. })) {
            self.named.insert(full(name), schema);
        }
        match schema {
            Schema::Array(array) => self.collect(&array.items),
            Schema::Map(map) => self.collect(&map.types),
            Schema::Union(union) => union.variants().iter().for_each(|variant| self.collect(variant)),
            Schema::Record(record) => record.fields.iter().for_each(|field| self.collect(&field.schema)),
            _ => {}
        }
    }

    fn node(&mut self, schema: &'a Schema) -> Result<Node, String> {
        Ok(match schema {
            Schema::Null => Node::Null,
            Schema::Boolean => Node::Boolean,
            Schema::Int => Node::Int,
            Schema::Long => Node::Long,
            Schema::Float => Node::Float,
            Schema::Double => Node::Double,
            Schema::Bytes => Node::Bytes,
            Schema::String => Node::Text,
            Schema::Array(array) => Node::List(Box::new(self.node(&array.items)?)),
            Schema::Map(map) => Node::Map(Box::new(self.node(&map.types)?)),
            Schema::Union(union) => self.union(union.variants())?,
            Schema::Record(record) => self.record(record)?,
            Schema::Enum(schema) => {
                Node::Enum(schema.symbols.iter().zip(0..).map(|(symbol, number)| (symbol.clone(), number)).collect())
            }
            Schema::Fixed(fixed) => Node::Fixed(fixed.size),
            Schema::Decimal(decimal) => Node::Decimal {
                precision: decimal.precision,
                scale: decimal.scale,
                size: match &decimal.inner {
                    InnerDecimalSchema::Bytes => None,
                    InnerDecimalSchema::Fixed(fixed) => Some(fixed.size),
                },
            },
            Schema::BigDecimal => return Err("the logical type big-decimal is not supported: use decimal".to_owned()),
            Schema::Uuid(UuidSchema::String) => Node::Uuid(UuidForm::Text),
            Schema::Uuid(UuidSchema::Bytes) => Node::Uuid(UuidForm::Bytes),
            Schema::Uuid(UuidSchema::Fixed(_)) => Node::Uuid(UuidForm::Fixed),
            Schema::Date => Node::Date,
            Schema::TimeMillis => Node::Time(Unit::Millis),
            Schema::TimeMicros => Node::Time(Unit::Micros),
            Schema::TimestampMillis => Node::Timestamp(Unit::Millis),
            Schema::TimestampMicros => Node::Timestamp(Unit::Micros),
            Schema::TimestampNanos => Node::Timestamp(Unit::Nanos),
            Schema::LocalTimestampMillis => Node::LocalTimestamp(Unit::Millis),
            Schema::LocalTimestampMicros => Node::LocalTimestamp(Unit::Micros),
            Schema::LocalTimestampNanos => Node::LocalTimestamp(Unit::Nanos),
            Schema::Duration(_) => {
                return Err("the logical type duration is not supported: use a string, or numbers".to_owned());
            }
            Schema::Ref { name } => self.named(name)?,
        })
    }

    fn named(&mut self, name: &Name) -> Result<Node, String> {
        let name = full(name);
        if let Some(number) = self.numbers.get(&name) {
            return Ok(Node::Record(*number));
        }
        let schema = self.named.get(&name).copied().ok_or_else(|| format!("nothing defines the type {name}"))?;
        self.node(schema)
    }

    fn record(&mut self, schema: &'a RecordSchema) -> Result<Node, String> {
        let name = full(&schema.name);
        if let Some(number) = self.numbers.get(&name) {
            return Ok(Node::Record(*number));
        }
        // Before its fields: one of them may be of the same record.
        let number = self.records.len();
        self.numbers.insert(name.clone(), number);
        self.records.push(Record { name: name.clone(), fields: Vec::new(), by_name: HashMap::new() });
        let mut fields = Vec::with_capacity(schema.fields.len());
        for field in &schema.fields {
            let node = self.node(&field.schema);
            let node = node.map_err(|what| format!("field {} of record {name}: {what}", field.name))?;
            let default = field.default.as_ref().map(ToString::to_string);
            fields.push(Field { name: field.name.clone(), node, default, written: None });
        }
        let by_name = fields.iter().enumerate().map(|(place, field)| (field.name.clone(), place)).collect();
        self.records[number] = Record { name, fields, by_name };
        Ok(Node::Record(number))
    }

    /// A JSON value must say which branch it is of.
    fn union(&mut self, variants: &'a [Schema]) -> Result<Node, String> {
        let nodes = variants.iter().map(|variant| self.node(variant)).collect::<Result<Vec<_>, _>>()?;
        for (place, node) in nodes.iter().enumerate() {
            let before = nodes[..place].iter().find_map(|other| {
                let shared = node.kinds().iter().find(|kind| other.kinds().contains(kind))?;
                Some(*shared)
            });
            if let Some(kind) = before {
                return Err(format!(
                    "more than one branch of its union takes {}, so that a row does not say which it means",
                    kind.as_str()
                ));
            }
        }
        Ok(Node::Union(nodes))
    }
}
