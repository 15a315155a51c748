//! What holds other values: records, lists, maps, unions.

use std::borrow::Cow;

use super::super::json::{Json, Kind};
use super::super::misfit::Misfit;
use super::{Avro, DEEPEST, Node, Record};

/// Writes values of one schema.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) avro: &'a Avro,
    /// Defaults of a schema have bytes as texts of one character each.
    pub(super) is_default: bool,
    /// The most bytes.
    pub(super) most: usize,
}

/// Numbers as Avro has them: the sign is the last bit, and each byte has seven bits.
pub(super) fn long(number: i64, out: &mut Vec<u8>) {
    let mut rest = (number << 1 ^ number >> 63).cast_unsigned();
    loop {
        let low = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// A length before what has it.
pub(super) fn length(bytes: usize, out: &mut Vec<u8>) {
    long(i64::try_from(bytes).unwrap_or(i64::MAX), out);
}

pub(super) fn wanted(what: &str, json: Json<'_>) -> Misfit {
    Misfit::new(format!("{what} is needed, the row has {}", json.kind().as_str()))
}

impl Writer<'_> {
    /// Appends a value that stands inside of `depth` others.
    pub(super) fn value(self, node: &Node, json: Json<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        if depth > DEEPEST {
            return Err(Misfit::new(format!("more than {DEEPEST} values inside each other")));
        }
        match node {
            Node::Record(number) => self.record(&self.avro.records[*number], json, depth, out)?,
            Node::List(of) => self.list(of, json, depth, out)?,
            Node::Map(of) => self.map(of, json, depth, out)?,
            Node::Union(nodes) => self.union(nodes, json, depth, out)?,
            scalar => return self.scalar(scalar, json, out),
        }
        if out.len() > self.most { Err(Misfit::Large(self.most)) } else { Ok(()) }
    }

    fn record(self, record: &Record, json: Json<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let members = json.members().ok_or_else(|| wanted("an object", json))?;
        let mut given: Vec<Option<Json<'_>>> = vec![None; record.fields.len()];
        for (name, value) in members {
            match record.by_name.get(name.as_ref()) {
                Some(place) => given[*place] = Some(value),
                None if self.avro.ignores_unknown => {}
                None => return Err(unknown(&name, &record.name)),
            }
        }
        for (field, value) in record.fields.iter().zip(given) {
            match (value, &field.written, &field.default) {
                (Some(value), _, _) => {
                    self.value(&field.node, value, depth + 1, out).map_err(|misfit| misfit.in_field(&field.name))?;
                }
                (None, Some(written), _) => out.extend_from_slice(written),
                // While defaults are written, one may rest on another.
                (None, None, Some(default)) => {
                    let default = Json::of(default.as_bytes()).ok_or_else(|| Misfit::new("its default is no JSON"))?;
                    let writer = Self { is_default: true, ..self };
                    writer
                        .value(&field.node, default, depth + 1, out)
                        .map_err(|misfit| misfit.in_field(&field.name))?;
                }
                (None, None, None) => {
                    return Err(Misfit::new("missing in the row, and the schema has no default").in_field(&field.name));
                }
            }
        }
        Ok(())
    }

    fn list(self, of: &Node, json: Json<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let elements = json.elements().ok_or_else(|| wanted("a list", json))?;
        if !elements.is_empty() {
            length(elements.len(), out);
        }
        for (number, element) in elements.into_iter().enumerate() {
            self.value(of, element, depth + 1, out).map_err(|misfit| misfit.in_element(number))?;
        }
        out.push(0);
        Ok(())
    }

    fn map(self, of: &Node, json: Json<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let mut members = json.members().ok_or_else(|| wanted("an object", json))?;
        keep_last(&mut members);
        if !members.is_empty() {
            length(members.len(), out);
        }
        for (name, value) in members {
            length(name.len(), out);
            out.extend_from_slice(name.as_bytes());
            self.value(of, value, depth + 1, out).map_err(|misfit| misfit.in_field(&name))?;
        }
        out.push(0);
        Ok(())
    }

    fn union(self, nodes: &[Node], json: Json<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let kind = json.kind();
        let others = nodes.iter().filter(|node| !matches!(node, Node::Null)).count();
        let is_meant = |node: &Node| match node {
            Node::Null => kind == Kind::Null,
            // The only one says itself what is wrong with the value.
            _ if others == 1 => kind != Kind::Null,
            node => node.kinds().contains(&kind),
        };
        let branch = nodes.iter().position(is_meant);
        let branch = branch.ok_or_else(|| Misfit::new(format!("no branch of its union takes {}", kind.as_str())))?;
        length(branch, out);
        self.value(&nodes[branch], json, depth + 1, out)
    }
}

fn unknown(name: &str, record: &str) -> Misfit {
    Misfit::new(format!("record {record} of the schema has no such field")).in_field(name)
}

/// Of members of one name the last one.
fn keep_last(members: &mut Vec<(Cow<'_, str>, Json<'_>)>) {
    let mut last = std::collections::HashMap::with_capacity(members.len());
    for (place, (name, _)) in members.iter().enumerate() {
        last.insert(name.clone(), place);
    }
    if last.len() < members.len() {
        let mut place = 0;
        members.retain(|(name, _)| {
            place += 1;
            last.get(name) == Some(&(place - 1))
        });
    }
}
