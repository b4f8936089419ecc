//! Columns of text.

use std::io::{self, Write};

/// Columns between two columns.
const GAP: &str = "  ";

/// On which side a column is flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    Left,
    Right,
}

/// Rows of as many cells as there are columns, the header first.
pub(super) struct Table<const N: usize> {
    columns: [Flush; N],
    rows: Vec<Row<N>>,
}

enum Row<const N: usize> {
    Cells([String; N]),
    /// What is too long for a column.
    Line(String),
}

impl<const N: usize> Table<N> {
    pub(super) fn new(columns: [Flush; N], header: [&str; N]) -> Self {
        Self { columns, rows: vec![Row::Cells(header.map(str::to_owned))] }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(Row::Cells(cells));
    }

    /// A line between rows that does not widen a column.
    pub(super) fn line(&mut self, line: String) {
        self.rows.push(Row::Line(line));
    }

    /// Writes the rows, without spaces at their ends.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: [usize; N] = std::array::from_fn(|column| {
            let widths = self.rows.iter().map(|row| match row {
                Row::Cells(cells) => cells[column].chars().count(),
                Row::Line(_) => 0,
            });
            widths.max().unwrap_or_default()
        });
        for row in &self.rows {
            let row = match row {
                Row::Cells(cells) => cells,
                Row::Line(line) => {
                    writeln!(out, "{line}")?;
                    continue;
                }
            };
            let mut line = String::new();
            for ((cell, width), flush) in row.iter().zip(widths).zip(self.columns) {
                match flush {
                    Flush::Left => line.push_str(&format!("{cell:<width$}{GAP}")),
                    Flush::Right => line.push_str(&format!("{cell:>width$}{GAP}")),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
