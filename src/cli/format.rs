//! `-o table` and `-o json`.

use clap::ValueEnum;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns, for people
    #[default]
    Table,
    /// One JSON document, for programs
    Json,
}
