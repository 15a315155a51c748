//! Which of a relay's rows keep their order among themselves: those of one key.
//!
//! The key is the record's key at Kafka; elsewhere the column `lane` of `[relay.turn]`, else whom a message goes to. It is read with
//! the row, behind what the sink needs.

use std::borrow::Cow;

use crate::batch::Batch;
use crate::cursor::parked::LONGEST_KEY;
use crate::message::{Field, Message};
use crate::position::Timestamp;
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
        let template = Template::compile("to", config.sink.recipient()?, Mode::Text).ok()?;
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

    /// The key that is made of these values, which are those of [`Self::numbers`] of a row of so many fields; none as in [`Self::of`].
    pub(in crate::relay) fn of_values(&self, fields: usize, values: &[Option<Vec<u8>>]) -> Option<String> {
        let mut all: Vec<Option<&[u8]>> = vec![None; fields];
        for (&number, value) in self.numbers().iter().zip(values) {
            all[number] = value.as_deref();
        }
        let mut row = Batch::new(fields);
        row.push(Timestamp::from_pg_micros(0), "", all);
        self.of(&row.message(0)).map(Cow::into_owned)
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
        sink::Config::Http(_)
        | sink::Config::Sms(_)
        | sink::Config::Webhook(_)
        | sink::Config::Sql(_)
        | sink::Config::Email(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => config.parking.lane.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_made_again_of_the_values_that_were_kept() {
        let value = |text: &str| Some(text.as_bytes().to_vec());
        let column = RowKey(Part::Value(1));
        assert_eq!(column.of_values(3, &[value("anna")]).as_deref(), Some("anna"));
        assert_eq!((column.of_values(3, &[None]), column.of_values(3, &[])), (None, None), "a row without a key");
        let to = Template::compile("to", "+{{ country }}{{ phone }}", Mode::Text).expect("it is well formed");
        let printed = RowKey(Part::Printed(to, vec![2, 0]));
        assert_eq!(printed.of_values(3, &[value("1"), value("555")]).as_deref(), Some("+1555"));
    }
}
