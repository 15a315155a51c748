//! How many bytes the values of a row take as text, as SQL that PostgreSQL answers before it makes any of them.
//!
//! Pure. For `text` and `bytea` the length stands in the value's header, so that nothing is fetched or decompressed. A type that
//! prints more than it stores is printed only where it could be large: a `jsonb` of a few bytes can hold a number of 147,456
//! digits, and one that is compressed many of them. A text of control characters is six times as long in JSON: the JSON of a row is made
//! for its length only where it could be large.

use std::collections::{BTreeMap, BTreeSet};

use super::cast;
use super::shape::{self, Shape};
use crate::database::quote_ident;
use crate::message::Field;
use kind::{LengthKind, SMALLEST, term};

mod kind;

/// A value is printed only for its length when it could be longer than so many times the limit: what is below is refused when it
/// has been read. Values of up to 2 kB, which PostgreSQL does not compress, are then never printed twice under the default.
const TOLERATED: usize = 2;
/// For a length alone: how many digits a column's seconds have does not count.
const OF_NO_TABLE: u32 = 0;
/// As JSON a byte takes at most six: `\u0001`.
const ESCAPED: usize = 6;

/// The columns of a row `t`.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    /// The name of each one's type.
    pub(super) types: BTreeMap<&'a str, &'a str>,
    /// Those of the database's own types.
    pub(super) own: &'a BTreeSet<String>,
}

impl Columns<'_> {
    /// The length of what is read of a row, in bytes; `most` is the limit that it is compared with. None when no row can be
    /// large.
    pub(super) fn length(&self, fields: &[Field], most: usize) -> Option<Length> {
        let (mut values, mut printed, mut expands) = (Vec::new(), Vec::new(), false);
        for field in fields {
            let terms = |columns: &mut dyn Iterator<Item = &str>, raw| -> Vec<String> {
                let term = |column: &str| {
                    let value = format!("t.{}", quote_ident(column));
                    term(&value, &cast::text(&value, self.own.contains(column)), (self.kind(column), raw), most)
                };
                columns.filter_map(term).collect()
            };
            let of_field = match field {
                Field::Row | Field::Debezium(None) => terms(&mut self.types.keys().copied(), false),
                Field::Columns(columns) | Field::Debezium(Some(columns)) => {
                    terms(&mut columns.iter().map(String::as_str), false)
                }
                Field::Text(column) => terms(&mut std::iter::once(column.as_str()), false),
                Field::Payload(column) => terms(&mut std::iter::once(column.as_str()), true),
                Field::Matches => Vec::new(),
            };
            if self.expands(field) {
                expands = true;
                let kinds = [&BTreeSet::new(), self.own];
                let json = shape::value(field, kinds, self.types.keys().copied(), OF_NO_TABLE);
                printed.push(format!("COALESCE(pg_catalog.octet_length({json}), 0)::bigint"));
            } else {
                printed.extend(of_field.iter().cloned());
            }
            values.extend(of_field);
        }
        let length = |terms: &[String]| terms.join(" + ");
        let printed = expands.then(|| length(&printed));
        (!values.is_empty()).then(|| Length { values: length(&values), printed, most })
    }

    fn kind(&self, column: &str) -> LengthKind {
        self.types.get(column).map_or(LengthKind::Printed(SMALLEST), |name| LengthKind::of(name))
    }

    /// Whether the field is JSON, and could be much longer than its values are as text.
    fn expands(&self, field: &Field) -> bool {
        let is_text = |column: &str| matches!(self.kind(column), LengthKind::Text | LengthKind::Printed(SMALLEST));
        // A string inside of the object, each of its quotes behind a backslash.
        let is_json = |column: &str| matches!(self.kind(column), LengthKind::Json | LengthKind::Printed(_));
        match field {
            Field::Row => self.types.keys().any(|column| is_text(column)),
            Field::Columns(columns) => columns.iter().any(|column| is_text(column)),
            Field::Debezium(None) => self.types.keys().any(|column| is_text(column) || is_json(column)),
            Field::Debezium(Some(columns)) => columns.iter().any(|column| is_text(column) || is_json(column)),
            Field::Text(_) | Field::Payload(_) | Field::Matches => false,
        }
    }

    /// At least so many bytes, for a row of which PostgreSQL cannot say more: what its values take where they are stored.
    fn stored(&self, fields: &[Field]) -> String {
        let columns = fields.iter().flat_map(|field| match field {
            Field::Row | Field::Debezium(None) => self.types.keys().map(|column| (*column).to_owned()).collect(),
            Field::Columns(columns) | Field::Debezium(Some(columns)) => columns.clone(),
            Field::Text(column) | Field::Payload(column) => vec![column.clone()],
            Field::Matches => Vec::new(),
        });
        let sizes =
            columns.map(|column| format!("COALESCE(pg_catalog.pg_column_size(t.{}), 0)::bigint", quote_ident(&column)));
        sizes.chain(["0".to_owned()]).collect::<Vec<_>>().join(" + ")
    }
}

/// The length of what is read of a row.
#[derive(Debug)]
pub(super) struct Length {
    /// Of the values as text.
    values: String,
    /// With the JSON that is made of them, where that could be much longer.
    printed: Option<String>,
    /// What it is compared with.
    most: usize,
}

impl Length {
    /// Values of more bytes may be too long as JSON; none where it is about as long as they are.
    pub(super) fn suspicious(&self) -> Option<usize> {
        self.printed.is_some().then_some(self.least())
    }

    const fn least(&self) -> usize {
        TOLERATED * self.most / ESCAPED
    }

    /// Of the values as text, in bytes.
    pub(super) fn values(&self) -> &str {
        &self.values
    }

    /// In bytes.
    pub(super) fn sql(&self) -> String {
        let Self { values, printed, most } = self;
        match printed {
            Some(printed) => {
                let least = self.least();
                format!("CASE WHEN {values} > {least} AND {values} <= {most} THEN {printed} ELSE {values} END")
            }
            None => values.clone(),
        }
    }

    /// `value`, unless the length is above the limit: then the statement fails at this row, and the rows before it have been sent.
    /// The server's log shows the length.
    fn unless_longer(&self, value: &str) -> String {
        let Self { values, printed, most } = self;
        let fails = |length: &str| {
            format!("(({length}) || ' bytes in a row, above max_row_bytes = {most}')::pg_catalog.int4::text")
        };
        let (least, too_long) = (self.least(), fails(values));
        match printed {
            Some(printed) => format!(
                "CASE WHEN {values} <= {least} THEN {value} WHEN {values} > {most} THEN {too_long} \
                 WHEN {printed} <= {most} THEN {value} ELSE {} END",
                fails(printed)
            ),
            None => format!("CASE WHEN {values} <= {most} THEN {value} ELSE {too_long} END"),
        }
    }
}

impl Shape {
    /// How many bytes the values of a row take of which these fields are read, and how many they take where they are stored:
    /// the row and the parameters of [`Self::row_sql`].
    #[must_use]
    pub fn length_sql(&self, fields: &[Field], most: usize) -> [String; 2] {
        let columns = self.lengths();
        let length = columns.length(fields, most).map_or_else(|| "0".to_owned(), |length| length.sql());
        [length, columns.stored(fields)].map(|bytes| self.at_sql(&format!("({bytes})::bigint")))
    }

    /// The bytes that the values of the largest of the newest 1,000 rows take, as they are read; of rows above `most`, before.
    #[must_use]
    pub fn largest_sql(&self, fields: &[Field], most: usize) -> String {
        let sizes = fields
            .iter()
            .map(|field| format!("COALESCE(pg_catalog.octet_length({}), 0)::bigint", self.value_sql(field)));
        let size = sizes.chain(["0".to_owned()]).collect::<Vec<_>>().join(" + ");
        self.most_of_newest(&match self.lengths().length(fields, most).map(|length| length.sql()) {
            Some(length) => format!("CASE WHEN {length} <= {most} THEN {size} ELSE {length} END"),
            None => size,
        })
    }

    /// The bytes that the values of the longest of the newest 1,000 rows take, as far as they are above `most`.
    #[must_use]
    pub fn longest_sql(&self, fields: &[Field], most: usize) -> String {
        let length = self.lengths().length(fields, most).map(|length| length.sql());
        self.most_of_newest(length.as_deref().unwrap_or("0"))
    }

    fn most_of_newest(&self, size: &str) -> String {
        let [created_at, id] = self.order();
        format!(
            "SELECT COALESCE(pg_catalog.max(size), 0)::bigint FROM (SELECT ({size})::bigint AS size FROM {} AS t \
             ORDER BY {created_at} DESC, {id} DESC LIMIT 1000) AS newest",
            self.config.table.quoted(),
        )
    }

    fn lengths(&self) -> Columns<'_> {
        let types = self.columns.iter().map(|(name, kind)| (name.as_str(), kind.name.as_str()));
        Columns { types: types.collect(), own: &self.own_columns }
    }

    /// The same, for rows that are delivered; of others nothing is read that could be too long.
    pub(super) fn id_if_matches_sql(&self, fields: &[Field], most: Option<usize>) -> String {
        let id = self.id_sql(fields, most);
        match self.matches() {
            Some(matches) => format!("CASE WHEN {matches} THEN {id} ELSE {} END", self.id_sql(&[], None)),
            None => id,
        }
    }

    /// The row's id as text, if what is read of the row takes no more than `most` bytes.
    pub(super) fn id_sql(&self, fields: &[Field], most: Option<usize>) -> String {
        self.id_unless_longer(most.and_then(|most| self.lengths().length(fields, most)))
    }

    /// The same, where PostgreSQL makes no JSON: how long that becomes is seen when it is made.
    pub(super) fn id_of_parts_sql(&self, fields: &[Field], most: Option<usize>) -> String {
        let length = most.and_then(|most| self.lengths().length(fields, most));
        self.id_unless_longer(length.map(|length| Length { printed: None, ..length }))
    }

    fn id_unless_longer(&self, length: Option<Length>) -> String {
        let [_, id] = self.order();
        let id = format!("{id}::text");
        length.map_or(id.clone(), |length| length.unless_longer(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(type_name: &str, field: Field) -> Option<String> {
        let columns = Columns { types: BTreeMap::from([("c", type_name)]), own: &BTreeSet::new() };
        columns.length(&[field], 16 << 20).map(|length| length.sql())
    }

    #[test]
    fn types_that_are_never_large_cost_nothing() {
        for name in
            ["integer", "uuid", "timestamp(3) with time zone", "numeric(10,2)", "boolean", "time without time zone"]
        {
            assert_eq!(length(name, Field::Row), None, "{name}");
        }
    }

    #[test]
    fn texts_are_measured_by_their_header_alone() {
        let text = Some("COALESCE(pg_catalog.octet_length(t.\"c\"), 0)::bigint".to_owned());
        for name in ["text", "character varying(20)", "character(3)"] {
            assert_eq!(length(name, Field::Text("c".to_owned())), text, "{name}");
        }
        assert_eq!(length("bytea", Field::Payload("c".to_owned())), text);
        assert!(
            length("bytea", Field::Text("c".to_owned())).expect("a value").contains("2 * "),
            "as hexadecimal digits"
        );
    }

    #[test]
    fn json_of_texts_is_made_for_its_length_when_it_could_be_large() {
        let raw = "COALESCE(pg_catalog.octet_length(t.\"c\"), 0)::bigint";
        let json = "COALESCE(pg_catalog.octet_length(pg_catalog.row_to_json(t.*)::text), 0)::bigint";
        let sql = format!("CASE WHEN {raw} > 5592405 AND {raw} <= 16777216 THEN {json} ELSE {raw} END");
        assert_eq!(length("text", Field::Row), Some(sql));
        // It prints its strings as it keeps them.
        assert!(!length("jsonb", Field::Row).expect("a value").contains("row_to_json"));
    }

    #[test]
    fn types_that_print_more_are_printed_when_large() {
        for (name, bound) in [("jsonb", "<= 2724 AND"), ("numeric[]", "<= 1816 AND"), ("mood", "<= 1816 AND")] {
            let length = length(name, Field::Columns(vec!["c".to_owned()])).expect("a value");
            assert!(length.contains(bound) && length.contains("octet_length(t.\"c\"::text)"), "{length}");
        }
    }
}
