//! What positions are compared by, in words that a cursor keeps.
//!
//! Pure.

use super::table::Column;

/// Digits of a second where a column says none.
const MOST: u32 = 6;

/// What a change of the order means for a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing: rows stand as they stood, those before it and those after it.
    None,
    /// Instants were rounded, or ids of one instant are in another order: all that moved is within a second.
    Within,
    /// An instant of before is another one now.
    Beyond,
}

/// The words: type, precision and zone of `created_at`, type and collation of `id`. Integers of all sizes have one order, and so have
/// `text` and `varchar`; names of columns do not count.
#[must_use]
pub fn words(created_at: Option<&Column>, id: Option<&Column>, zone: Option<&str>) -> String {
    let instant = created_at.map_or_else(String::new, |column| {
        let digits = u32::try_from(column.modifier).map_or(MOST, |digits| digits.min(MOST));
        let zone = zone.map_or_else(String::new, |zone| format!(" in {zone}"));
        format!("{}{zone} ({digits} digits)", column.type_name)
    });
    let id = id.map_or_else(String::new, |column| {
        let type_name = match column.type_name.as_str() {
            "smallint" | "integer" | "bigint" => "integer",
            "character varying" => "text",
            other => other,
        };
        let collation =
            column.collation.as_ref().map_or_else(String::new, |collation| format!(" collation {collation}"));
        format!("{type_name}{collation}")
    });
    format!("{instant}, {id}")
}

/// What has changed between two such words.
#[must_use]
pub fn change(known: &str, now: &str) -> Change {
    if known == now {
        return Change::None;
    }
    let (Some(known), Some(now)) = (parts(known), parts(now)) else { return Change::Beyond };
    match () {
        () if known.instant != now.instant => Change::Beyond,
        () if known.id == now.id && known.digits <= now.digits => Change::None,
        () => Change::Within,
    }
}

/// What has changed between two pairs of column numbers, of `created_at` and `id` of one table: the values of another column say nothing
/// of those of before, of whatever type they are.
#[must_use]
pub fn change_of_columns(known: &[i16], now: &[i16]) -> Change {
    match () {
        () if known == now => Change::None,
        () if known.first() == now.first() => Change::Within,
        () => Change::Beyond,
    }
}

struct Parts<'a> {
    instant: &'a str,
    digits: u32,
    id: &'a str,
}

fn parts(words: &str) -> Option<Parts<'_>> {
    let (instant, rest) = words.split_once(" (")?;
    let (digits, id) = rest.split_once(" digits), ")?;
    Some(Parts { instant, digits: digits.parse().ok()?, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(instant: (&str, i32, Option<&str>), id: (&str, Option<&str>)) -> String {
        let column = |type_name: &str, modifier: i32, collation: Option<&str>| Column {
            type_name: type_name.to_owned(),
            modifier,
            collation: collation.map(str::to_owned),
            ..Column::default()
        };
        words(Some(&column(instant.0, instant.1, None)), Some(&column(id.0, -1, id.1)), instant.2)
    }

    // Guarantee: horizon.order-changed
    #[test]
    fn change_is_what_can_put_a_row_on_the_other_side_of_a_position() {
        let (zoned, plain) = ("timestamp with time zone", "timestamp without time zone");
        let known = of((zoned, -1, None), ("integer", None));
        assert_eq!(known, "timestamp with time zone (6 digits), integer");
        let text = |collation: &str| of((zoned, -1, None), ("text", Some(collation)));
        for (known, now, expected) in [
            (known.clone(), of((zoned, 6, None), ("bigint", None)), Change::None),
            (of((zoned, 3, None), ("uuid", None)), of((zoned, -1, None), ("uuid", None)), Change::None),
            (text("\"C\""), of((zoned, -1, None), ("character varying", Some("\"C\""))), Change::None),
            (known.clone(), of((zoned, 3, None), ("integer", None)), Change::Within),
            (known.clone(), text("\"C\""), Change::Within),
            (text("\"C\""), text("\"a, b (1 digits), c\""), Change::Within),
            (known.clone(), of((plain, -1, Some("UTC")), ("integer", None)), Change::Beyond),
            (
                of((plain, -1, Some("UTC")), ("integer", None)),
                of((plain, -1, Some("Europe/Berlin")), ("integer", None)),
                Change::Beyond,
            ),
            (known, "of another version".to_owned(), Change::Beyond),
        ] {
            assert_eq!(change(&known, &now), expected, "{known} -> {now}");
        }
        for (known, now, expected) in
            [([2, 1], [2, 1], Change::None), ([2, 1], [2, 5], Change::Within), ([2, 1], [5, 1], Change::Beyond)]
        {
            assert_eq!(change_of_columns(&known, &now), expected, "{known:?} -> {now:?}");
        }
    }
}
