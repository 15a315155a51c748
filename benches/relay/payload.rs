//! What a record's value is made of.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A text column of 200 bytes.
    Text,
    /// The whole row as JSON, of about 200 bytes.
    Row,
}

impl Payload {
    /// Both; the text comes first.
    pub const ALL: [Self; 2] = [Self::Text, Self::Row];

    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Row => "row",
        }
    }

    /// The table with the rows.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Text => "public.bookings_text",
            Self::Row => "public.bookings_row",
        }
    }

    /// How many bytes the column `payload` has: a row's other columns and names take the rest of the 200.
    pub const fn column_bytes(self) -> i32 {
        match self {
            Self::Text => 200,
            Self::Row => 112,
        }
    }

    /// The value in SQL.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Text => "t.payload",
            Self::Row => "row_to_json(t)::text",
        }
    }

    /// The sink's setting.
    pub const fn toml(self) -> &'static str {
        match self {
            Self::Text => "{ column = \"payload\" }",
            Self::Row => "{ row = true }",
        }
    }
}
