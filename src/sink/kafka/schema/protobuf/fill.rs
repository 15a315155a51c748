//! Messages, and fields of several values.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind as Type, MapKey, MessageDescriptor, Syntax, Value};

use super::super::avro::DEEPEST;
use super::super::json::{Json, Kind};
use super::super::misfit::Misfit;
use super::super::number;
use super::scalar::{self, wanted};
use super::well_known;

/// Fills messages of one schema.
#[derive(Clone, Copy)]
pub(super) struct Filler {
    pub(super) ignores_unknown: bool,
}

impl Filler {
    /// A message that stands inside of `depth` others.
    pub(super) fn message(
        self,
        of: &MessageDescriptor,
        json: Json<'_>,
        depth: usize,
    ) -> Result<DynamicMessage, Misfit> {
        if depth > DEEPEST {
            return Err(Misfit::new(format!("more than {DEEPEST} messages inside each other")));
        }
        if let Some(made) = well_known::message(of, json) {
            return made;
        }
        let members = json.members().ok_or_else(|| wanted("an object", json))?;
        let mut message = DynamicMessage::new(of.clone());
        let mut filled: HashMap<u32, &str> = HashMap::with_capacity(members.len());
        for (name, value) in &members {
            let name: &str = name;
            let field = of.get_field_by_name(name).or_else(|| of.get_field_by_json_name(name));
            match field {
                Some(field) => {
                    if let Some(other) = filled.insert(field.number(), name).filter(|other| *other != name) {
                        let what = format!("the row has {other}, too, which is the same field of the schema");
                        return Err(Misfit::new(what).in_field(name));
                    }
                    self.set(&mut message, &field, *value, depth).map_err(|misfit| misfit.in_field(name))?;
                }
                None if self.ignores_unknown => {}
                None => {
                    let what = format!("message {} of the schema has no such field", of.full_name());
                    return Err(Misfit::new(what).in_field(name));
                }
            }
        }
        if of.parent_file().syntax() == Syntax::Proto2
            && let Some(missing) = of.fields().find(|field| field.is_required() && !message.has_field(field))
        {
            return Err(Misfit::new("missing in the row, and required by the schema").in_field(missing.name()));
        }
        Ok(message)
    }

    fn set(
        self,
        message: &mut DynamicMessage,
        field: &FieldDescriptor,
        json: Json<'_>,
        depth: usize,
    ) -> Result<(), Misfit> {
        if json.kind() == Kind::Null && !well_known::takes_null(field) {
            message.clear_field(field);
            return Ok(());
        }
        if let Some(oneof) = field.containing_oneof().filter(|oneof| !oneof.is_synthetic())
            && let Some(other) = oneof.fields().find(|other| other != field && message.has_field(other))
        {
            return Err(Misfit::new(format!("the row has {}, too, of which the schema takes one", other.name())));
        }
        let value = if field.is_map() {
            self.map(field, json, depth)?
        } else if field.is_list() {
            self.list(&field.kind(), json, depth)?
        } else {
            self.value(&field.kind(), json, depth)?
        };
        message.try_set_field(field, value).map_err(|error| Misfit::new(error.to_string()))
    }

    fn list(self, of: &Type, json: Json<'_>, depth: usize) -> Result<Value, Misfit> {
        let elements = json.elements().ok_or_else(|| wanted("a list", json))?;
        let element =
            |(number, element)| self.value(of, element, depth).map_err(|misfit: Misfit| misfit.in_element(number));
        elements.into_iter().enumerate().map(element).collect::<Result<_, _>>().map(Value::List)
    }

    fn map(self, field: &FieldDescriptor, json: Json<'_>, depth: usize) -> Result<Value, Misfit> {
        let members = json.members().ok_or_else(|| wanted("an object", json))?;
        let kind = field.kind();
        let entry = kind.as_message().ok_or_else(|| Misfit::new("the schema's map has no entry"))?;
        let (key, of) = (entry.map_entry_key_field().kind(), entry.map_entry_value_field().kind());
        let mut map: HashMap<MapKey, (&str, Value)> = HashMap::with_capacity(members.len());
        for (name, value) in &members {
            let name: &str = name;
            let made = map_key(&key, name).and_then(|key| Ok((key, self.value(&of, *value, depth)?)));
            let (key, value) = made.map_err(|misfit| misfit.in_field(name))?;
            if map.insert(key, (name, value)).is_some_and(|(other, _)| other != name) {
                return Err(Misfit::new("the row has this key under another name, too").in_field(name));
            }
        }
        Ok(Value::Map(map.into_iter().map(|(key, (_, value))| (key, value)).collect()))
    }

    /// One value.
    fn value(self, of: &Type, json: Json<'_>, depth: usize) -> Result<Value, Misfit> {
        match of {
            Type::Message(of) => self.message(of, json, depth + 1).map(Value::Message),
            scalar => scalar::value(scalar, json),
        }
    }
}

fn map_key(of: &Type, name: &str) -> Result<MapKey, Misfit> {
    fn whole<T: TryFrom<i128>>(name: &str, what: &str) -> Result<T, Misfit> {
        let number = number::whole(name).and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| Misfit::new(format!("the name is not {what}, which the schema's map has for keys")))
    }
    Ok(match of {
        Type::Bool => MapKey::Bool(match name {
            "true" => true,
            "false" => false,
            _ => return Err(Misfit::new("the name is neither true nor false, which the schema's map has for keys")),
        }),
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => MapKey::I32(whole(name, "a whole number of 32 bits")?),
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => MapKey::I64(whole(name, "a whole number of 64 bits")?),
        Type::Uint32 | Type::Fixed32 => MapKey::U32(whole(name, "a natural number of 32 bits")?),
        Type::Uint64 | Type::Fixed64 => MapKey::U64(whole(name, "a natural number of 64 bits")?),
        _ => MapKey::String(name.to_owned()),
    })
}
