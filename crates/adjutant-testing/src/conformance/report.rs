//! The outcomes of the hazards: a column for each subject, a row for each hazard, and nothing left out.

use std::fmt;

use super::HAZARDS;

/// The outcomes of the hazards for one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The name of the subject.
    pub subject: String,
    /// The outcome of each hazard that was played, in order.
    pub rows: Vec<Row>,
}

/// The outcome of one hazard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The name of the hazard.
    pub hazard: &'static str,
    /// `Ok`, or the expected and the actual result.
    pub result: Result<(), String>,
}

/// The reports of several subjects as a table. `Display` prints the table and then the reasons of failures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matrix {
    reports: Vec<Report>,
}

impl Report {
    /// Returns the outcome of a hazard; `None` if it was not played.
    pub fn result(&self, hazard: &str) -> Option<&Result<(), String>> {
        self.rows
            .iter()
            .find(|row| row.hazard == hazard)
            .map(|row| &row.result)
    }

    /// The hazards that the subject did not bear, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.rows.iter().filter_map(|row| {
            row.result
                .as_ref()
                .err()
                .map(|why| (row.hazard, why.as_str()))
        })
    }
}

impl Matrix {
    /// A table of these reports, each a column.
    pub fn new(reports: impl IntoIterator<Item = Report>) -> Self {
        Self {
            reports: reports.into_iter().collect(),
        }
    }

    /// The cells that are empty, each by hazard and subject.
    pub fn missing(&self) -> Vec<(&'static str, &str)> {
        self.cells()
            .filter(|(_, _, cell)| cell.is_none())
            .map(|(hazard, subject, _)| (hazard, subject))
            .collect()
    }

    /// The cells that failed, each by hazard and subject, and why.
    pub fn failures(&self) -> Vec<(&'static str, &str, &str)> {
        let cells = self.cells();
        cells
            .filter_map(|(hazard, subject, cell)| {
                Some((hazard, subject, cell?.as_ref().err()?.as_str()))
            })
            .collect()
    }

    fn cells(&self) -> impl Iterator<Item = (&'static str, &str, Option<&Result<(), String>>)> {
        HAZARDS.iter().flat_map(|hazard| {
            self.reports.iter().map(|report| {
                (
                    hazard.name,
                    report.subject.as_str(),
                    report.result(hazard.name),
                )
            })
        })
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = HAZARDS
            .iter()
            .map(|hazard| hazard.name.len())
            .max()
            .unwrap_or_default();
        write!(f, "{:width$}", "hazard")?;
        for report in &self.reports {
            write!(f, " | {}", report.subject)?;
        }
        for hazard in HAZARDS {
            write!(f, "\n{:width$}", hazard.name)?;
            for report in &self.reports {
                let cell = match report.result(hazard.name) {
                    Some(Ok(())) => "ok",
                    Some(Err(_)) => "FAILED",
                    None => "MISSING",
                };
                write!(
                    f,
                    " | {cell:column$}",
                    column = report.subject.chars().count()
                )?;
            }
        }
        for (hazard, subject, why) in self.failures() {
            write!(f, "\n{subject}, {hazard}: {why}")?;
        }
        Ok(())
    }
}
