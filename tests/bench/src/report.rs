//! What was measured, as rows: a table for people, JSON for programs. A bar is reported as met or not met; it decides nothing.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// One measured value.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Letter of the measurement.
    measurement: char,
    /// What was measured.
    what: String,
    /// How much it is.
    value: f64,
    /// Of what.
    unit: &'static str,
    /// What it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    bar: Option<String>,
    /// Whether it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

/// So much of that.
pub(crate) type Amount = (f64, &'static str);

/// A bar: what a value should be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Less than this.
    Below(f64),
}

/// Everything that was measured in a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// When the run began.
    began: String,
    /// Whether the numbers are of a short run, which say nothing.
    short: bool,
    /// What it ran on.
    machine: String,
    rows: Vec<Row>,
}

impl Bar {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
            Self::Below(bar) => value < bar,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bar) => format!("≥ {}", short(bar)),
            Self::AtMost(bar) => format!("≤ {}", short(bar)),
            Self::Below(bar) => format!("< {}", short(bar)),
        }
    }
}

impl Report {
    /// An empty one.
    #[expect(clippy::disallowed_methods, reason = "a run has a date, and this is no code of the operator")]
    pub(crate) fn new(short: bool, machine: String) -> Self {
        Self { began: jiff::Timestamp::now().to_string(), short, machine, rows: Vec::new() }
    }

    /// A value without a bar.
    pub(crate) fn fact(&mut self, measurement: char, what: impl Into<String>, (value, unit): Amount) {
        self.add(Row { measurement, what: what.into(), value, unit, bar: None, met: None });
    }

    /// A value with its bar.
    pub(crate) fn value(&mut self, measurement: char, what: impl Into<String>, (value, unit): Amount, bar: Bar) {
        self.add(Row { measurement, what: what.into(), value, unit, bar: Some(bar.text()), met: Some(bar.met(value)) });
    }

    fn add(&mut self, row: Row) {
        println!("  {}", line(&row));
        self.rows.push(row);
    }

    /// The value of a row that was measured before.
    pub(crate) fn find(&self, measurement: char, what: &str) -> Option<f64> {
        self.rows.iter().find(|row| row.measurement == measurement && row.what == what).map(|row| row.value)
    }

    /// As a table that is Markdown too.
    pub(crate) fn table(&self) -> String {
        let head = ["", "measured", "value", "bar", ""].map(str::to_owned);
        let cells: Vec<_> = std::iter::once(head).chain(self.rows.iter().map(cells)).collect();
        let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths = [0, 1, 2, 3, 4].map(width);
        let mut text = format!("{}\n", self.machine);
        if self.short {
            text += "A short run: it shows that everything can be measured. Its numbers say nothing.\n";
        }
        text.push('\n');
        for (number, row) in cells.iter().enumerate() {
            for (cell, width) in row.iter().zip(widths) {
                let _ = write!(text, "| {cell:width$} "); // writing to a String cannot fail
            }
            text += "|\n";
            if number == 0 {
                text += &widths.map(|width| format!("|{}", "-".repeat(width + 2))).concat();
                text += "|\n";
            }
        }
        text
    }

    /// Writes `results.json` and `results.md` into a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let files = [("results.json", serde_json::to_string_pretty(self)? + "\n"), ("results.md", self.table())];
        for (name, text) in files {
            let file = folder.join(name);
            fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
            println!("{}", file.display());
        }
        Ok(())
    }
}

fn cells(row: &Row) -> [String; 5] {
    let met = row.met.map_or("", |met| if met { "met" } else { "not met" });
    let value = format!("{} {}", short(row.value), row.unit);
    [
        format!("({})", row.measurement),
        row.what.clone(),
        value.trim().to_owned(),
        row.bar.clone().unwrap_or_default(),
        met.to_owned(),
    ]
}

fn line(row: &Row) -> String {
    let [letter, what, value, bar, met] = cells(row);
    let judged = if bar.is_empty() { String::new() } else { format!(" ({bar}: {met})") };
    format!("{letter} {what}: {value}{judged}")
}

/// Three digits or so.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 || value.fract() == 0.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_whether_it_is_met() {
        for (bar, value, met, text) in [
            (Bar::AtLeast(0.6), 0.6, true, "≥ 0.60"),
            (Bar::AtLeast(0.6), 0.59, false, "≥ 0.60"),
            (Bar::AtMost(40.0), 40.0, true, "≤ 40"),
            (Bar::Below(250.0), 250.0, false, "< 250"),
        ] {
            assert_eq!((bar.met(value), bar.text().as_str()), (met, text));
        }
    }

    #[test]
    fn a_missed_bar_is_shown_as_such() {
        let mut report = Report::new(true, "a machine".to_owned());
        report.value('b', "rate", (0.5, ""), Bar::AtLeast(0.6));
        report.fact('a', "bare", (250.4, "objects/s"));
        let table = report.table();
        assert!(table.contains("| (b) | rate     | 0.50          | ≥ 0.60 | not met |"), "{table}");
        assert!(table.contains("250 objects/s"), "{table}");
        assert_eq!(report.find('b', "rate"), Some(0.5));
        assert_eq!(serde_json::to_value(&report).unwrap()["rows"][0]["met"], false);
    }
}
