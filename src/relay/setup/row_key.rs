//! Which of a relay's rows keep their order among themselves: those of one key.
//!
//! The key is the record's key at Kafka; elsewhere the column `lane` of `[relay.turn]`, else whom a message goes to. It is read with
//! the row, behind what the sink needs.

use std::borrow::Cow;

use crate::cursor::parked::LONGEST_KEY;
use crate::message::{Field, Message};
use crate::relay::Config;
use crate::sink;
use crate::sink::template::{Mode, Template};

/// See the module.
#[derive(Debug)]
pub struct RowKey(Part);

#[derive(Debug)]
enum Part {
    /// The value of this number.
    Value(usize),
    /// A template over the values of these numbers.
    Printed(Template, Vec<usize>),
}

impl RowKey {
    /// The key of a relay that sets keys apart, and what must be read for it, appended to what the sink reads.
    pub(in crate::relay) fn new(config: &Config, fields: &mut Vec<Field>) -> Option<Self> {
        let mut number = |column: &str| {
            let field = Field::Text(column.to_owned());
            fields.iter().position(|known| *known == field).unwrap_or_else(|| {
                fields.push(field);
                fields.len() - 1
            })
        };
        if let Some(column) = column(config) {
            return Some(Self(Part::Value(number(column))));
        }
        let to = match &config.sink {
            sink::Config::Sms(sms) => &sms.to,
            sink::Config::Email(email) => &email.to,
            sink::Config::Kafka(_)
            | sink::Config::Http(_)
            | sink::Config::Webhook(_)
            | sink::Config::Sql(_)
            | sink::Config::Stdout(_)
            | sink::Config::Command(_)
            | sink::Config::Custom(_) => return None,
        };
        let template = Template::compile("to", to, Mode::Text).ok()?;
        let numbers = template.columns().iter().map(|column| number(column)).collect();
        Some(Self(Part::Printed(template, numbers)))
    }

    /// The row's key; none where it has none, or where it cannot be made of the row.
    pub(in crate::relay) fn of<'a>(&self, message: &Message<'a>) -> Option<Cow<'a, str>> {
        Some(match &self.0 {
            Part::Value(number) => String::from_utf8_lossy(message.value(*number)?),
            Part::Printed(template, numbers) => {
                Cow::Owned(template.render(|number| message.given(numbers[number])).ok()?)
            }
        })
    }

    /// The numbers of the fields that it is made of.
    pub(in crate::relay) fn numbers(&self) -> &[usize] {
        match &self.0 {
            Part::Value(number) => std::slice::from_ref(number),
            Part::Printed(_, numbers) => numbers,
        }
    }

    /// Whether a key can be parked.
    pub(in crate::relay) fn fits(key: &str) -> bool {
        key.len() <= LONGEST_KEY && !key.contains('\0')
    }
}

/// The column whose text is the key, where it is one.
#[must_use]
pub(in crate::relay) fn column(config: &Config) -> Option<&str> {
    match &config.sink {
        sink::Config::Kafka(kafka) => kafka.key.as_deref(),
        _ => config.parking.lane.as_deref(),
    }
}
