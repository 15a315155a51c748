//! `schema.table` as written in the configuration.

use super::problem::Wrong;
use crate::source::TableName;

const FIX_QUOTES: &str =
    "quote a name that contains a dot or a quotation mark: public.\"odd.name\" (a quotation mark in it twice)";

/// Splits on the dot; parts may stand in double quotes. Case is kept as written.
pub(super) fn parse(text: &str) -> Result<TableName, Wrong> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = part(rest)?;
        parts.push(part);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => break,
            None => return Err(Wrong::new("something follows a closing quotation mark", FIX_QUOTES)),
        }
    }
    if parts.iter().any(|part| part.len() > 63) {
        return Err(Wrong::new("longer than a name can be (63 bytes)", "write the names as in the catalog"));
    }
    match <[String; 2]>::try_from(parts) {
        Ok([schema, name]) => Ok(TableName { schema, name }),
        Err(parts) if parts.len() == 1 => {
            let fix = format!("write the schema too, for example \"public.{text}\"");
            Err(Wrong::new("a table without its schema could mean another one tomorrow", fix))
        }
        Err(_) => Err(Wrong::new("more than schema and table", FIX_QUOTES)),
    }
}

/// The first part and what follows it.
fn part(text: &str) -> Result<(String, &str), Wrong> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(['.', '"']).unwrap_or(text.len());
        let (part, after) = text.split_at(end);
        if after.starts_with('"') {
            return Err(Wrong::new("a quotation mark within a name", FIX_QUOTES));
        }
        if part.is_empty() || part != part.trim() {
            return Err(Wrong::new("an empty name, or one with blanks around it", "write \"schema.table\""));
        }
        return Ok((part.to_owned(), after));
    };
    let mut part = String::new();
    while let Some((before, after)) = rest.split_once('"') {
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None if part.is_empty() => return Err(Wrong::new("an empty name", "write \"schema.table\"")),
            None => return Ok((part, after)),
        }
    }
    Err(Wrong::new("a quotation mark is not closed", FIX_QUOTES))
}

/// As [`parse`] reads it: quoted only where it must be.
pub(super) fn print(table: &TableName) -> String {
    let quoted = |name: &str| {
        let plain = !name.contains(['.', '"']) && name == name.trim();
        if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    };
    format!("{}.{}", quoted(&table.schema), quoted(&table.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_written_and_print_back() {
        for (text, schema, name) in [
            ("public.bookings", "public", "bookings"),
            ("public.Bookings", "public", "Bookings"),
            ("public.\"Weird.Table\"", "public", "Weird.Table"),
            ("\"my \"\"schema\"\"\".\"a\"\"b\"", "my \"schema\"", "a\"b"),
            ("\"a b\".user", "a b", "user"),
        ] {
            let table = parse(text).expect(text);
            assert_eq!((table.schema.as_str(), table.name.as_str()), (schema, name));
            assert_eq!(parse(&print(&table)), Ok(table));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in
            ["bookings", "", ".", "a.", ".a", "a.b.c", "a.\"b", "\"a\"b.c", "a.b\"c", "\"\".a", " a.b", "a. b", "a..b"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
