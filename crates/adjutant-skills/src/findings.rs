//! The findings of one load or check, bounded.

use std::sync::Arc;

use crate::{Finding, FindingKind, Location, Severity, limits::MAX_FINDINGS};

/// The measure for a skill: the specification, or use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Everything that can be used is used.
    Lenient,
    /// A breach of the specification is an error.
    Strict,
}

/// The findings so far.
#[derive(Debug)]
pub(crate) struct Findings {
    rules: Strictness,
    list: Vec<Finding>,
}

impl Strictness {
    /// Returns how bad a breach of the specification is.
    pub(crate) fn severity(self) -> Severity {
        match self {
            Strictness::Lenient => Severity::Warning,
            Strictness::Strict => Severity::Error,
        }
    }
}

impl Findings {
    pub(crate) fn new(rules: Strictness) -> Self {
        Self {
            rules,
            list: Vec::new(),
        }
    }

    pub(crate) fn rules(&self) -> Strictness {
        self.rules
    }

    /// The number of errors that make a skill violate the specification: an unknown field is only reported.
    pub(crate) fn violations(&self) -> usize {
        let is_violation = |finding: &&Finding| {
            finding.severity == Severity::Error && finding.kind != FindingKind::UnknownField
        };
        self.list.iter().filter(is_violation).count()
    }

    /// Measures by these rules from now on; returns the previous ones.
    pub(crate) fn replace_rules(&mut self, rules: Strictness) -> Strictness {
        std::mem::replace(&mut self.rules, rules)
    }

    pub(crate) fn push(
        &mut self,
        severity: Severity,
        kind: FindingKind,
        place: Location,
        message: impl Into<Arc<str>>,
    ) {
        if self.list.len() < MAX_FINDINGS {
            self.list.push(Finding::new(severity, kind, place, message));
        } else if self.list.len() == MAX_FINDINGS {
            let message = "there are more findings, which are omitted";
            self.list.push(Finding::new(
                Severity::Warning,
                FindingKind::TooMany,
                place,
                message,
            ));
        }
    }

    pub(crate) fn warn(
        &mut self,
        kind: FindingKind,
        place: Location,
        message: impl Into<Arc<str>>,
    ) {
        self.push(Severity::Warning, kind, place, message);
    }

    pub(crate) fn refuse(
        &mut self,
        kind: FindingKind,
        place: Location,
        message: impl Into<Arc<str>>,
    ) {
        self.push(Severity::Error, kind, place, message);
    }

    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.list
    }
}
