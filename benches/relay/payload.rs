//! What a record's value is made of.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A text column of 200 bytes.
    Text,
    /// The whole row as JSON, of about 200 bytes.
    Row,
    /// A text column of 1.6 KiB: the largest that usually stays in the row.
    Text1600,
    /// A text column of 16 KiB, which PostgreSQL keeps beside the table.
    Text16k,
}

impl Payload {
    /// All; the text of 200 bytes comes first.
    pub const ALL: [Self; 4] = [Self::Text, Self::Row, Self::Text1600, Self::Text16k];

    /// Its kind in the document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Text | Self::Text1600 | Self::Text16k => "text",
        }
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Text => "text, 200 B",
            Self::Row => "whole row as JSON, 200 B",
            Self::Text1600 => "text, 1.6 KiB",
            Self::Text16k => "text, 16 KiB",
        }
    }

    /// The table with the rows; without its schema also a part of cursors' names.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Text => "public.text_200",
            Self::Row => "public.row_200",
            Self::Text1600 => "public.text_1600",
            Self::Text16k => "public.text_16k",
        }
    }

    /// How many bytes the column `payload` has: a row's other columns and names take the rest of the 200.
    pub const fn column_bytes(self) -> i32 {
        match self {
            Self::Text => 200,
            Self::Row => 112,
            Self::Text1600 => 1_638,
            Self::Text16k => 16_384,
        }
    }

    /// The value in SQL.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Row => "row_to_json(t)::text",
            Self::Text | Self::Text1600 | Self::Text16k => "t.payload",
        }
    }

    /// The sink's setting.
    pub const fn toml(self) -> &'static str {
        match self {
            Self::Row => "{ row = true }",
            Self::Text | Self::Text1600 | Self::Text16k => "{ column = \"payload\" }",
        }
    }
}
