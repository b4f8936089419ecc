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
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(columns: [Flush; N], header: [&str; N]) -> Self {
        Self { columns, rows: vec![header.map(str::to_owned)] }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Writes the rows, without spaces at their ends.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: [usize; N] = std::array::from_fn(|column| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        });
        for row in &self.rows {
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
