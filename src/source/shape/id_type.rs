//! The types that ids may be of, and their order.

/// The type of the id column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdType {
    /// `smallint`.
    SmallInt,
    /// `integer`.
    Integer,
    /// `bigint`.
    BigInt,
    /// `uuid`.
    Uuid,
    /// `text` or `varchar`, in the column's collation.
    Text,
}

impl IdType {
    /// The type that `format_type` calls so; none when ids may not be of it.
    #[must_use]
    pub fn named(type_name: &str) -> Option<Self> {
        Some(match type_name {
            "smallint" => Self::SmallInt,
            "integer" => Self::Integer,
            "bigint" => Self::BigInt,
            "uuid" => Self::Uuid,
            "text" | "character varying" => Self::Text,
            _ => return None,
        })
    }

    /// Whether one id stands before another in the order of the rows; none when only the database can tell.
    #[must_use]
    pub fn is_before(self, one: &str, other: &str) -> Option<bool> {
        match self {
            Self::SmallInt | Self::Integer | Self::BigInt => {
                Some(one.parse::<i64>().ok()? < other.parse::<i64>().ok()?)
            }
            // In lower case and of one length.
            Self::Uuid => Some(one < other),
            Self::Text => None,
        }
    }

    pub(in crate::source) const fn sql(self) -> &'static str {
        match self {
            Self::SmallInt => "smallint",
            Self::Integer => "integer",
            Self::BigInt => "bigint",
            Self::Uuid => "uuid",
            Self::Text => "text",
        }
    }
}
