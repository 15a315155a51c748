//! Aligned columns for people.

pub use crate::visible::visible;

/// Rows of text under a header; printed with two blanks between columns.
#[derive(Debug)]
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with this header.
    #[must_use]
    pub fn new(header: [&str; N]) -> Self {
        Self { rows: vec![header.map(str::to_owned)] }
    }

    /// Adds a row.
    pub fn row(&mut self, row: [String; N]) {
        self.rows.push(row.map(|cell| visible(&cell)));
    }

    /// The text, a line a row.
    #[must_use]
    pub fn render(&self) -> String {
        let widths: Vec<usize> =
            (0..N).map(|n| self.rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_control_characters_shown_as_escapes() {
        let mut table = Table::new(["A", "LONGER"]);
        table.row(["wide cell".to_owned(), "\u{1b}[31mx".to_owned()]);
        assert_eq!(table.render(), "A          LONGER\nwide cell  \\u{1b}[31mx\n");
    }
}
