//! Sections that need no type of their own, and the default text of the behavioural constraints.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{BoxError, Section, SectionContext, SectionKind};
use crate::instructions::InstructionError;

/// Habits of careful work: the ready text of [`SectionKind::BehavioralConstraints`].
pub const BEHAVIORAL_CONSTRAINTS: &str = "\
- When a path was not found, find out what is really there before you use that path, or one like it, again.
- After an error, find its cause before you act. Never try the same action a third time unchanged.
- When five calls in a row have brought you no further, stop, question your approach, and choose another one.
- Read a file before you change it, and search before you assume where something is or how it works.
- Read an error message to its end: it often names the cure.
- Change only what must change; prefer a small, exact edit to writing a whole file anew.
- Before work of several steps, outline a plan, and follow it until you learn better.
- Of the tools that would do, take the most specific one.
- When few turns are left, do what matters most first, and say what is done and what is still open.";

/// The most characters that a section of identity shows of a description.
const MAX_DESCRIPTION_CHARS: usize = 4_000;

/// A section with a constant text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSection {
    kind: SectionKind,
    text: Arc<str>,
}

/// A section made of a function; see [`section_fn`].
pub struct FnSection<F> {
    kind: SectionKind,
    make: F,
}

/// Creates a section with a constant text.
pub fn section_text(kind: SectionKind, text: impl Into<Arc<str>>) -> TextSection {
    TextSection {
        kind,
        text: text.into(),
    }
}

/// Creates a section from a function, which is called at each run start.
///
/// A closure that captures something returns an `async move` block.
///
/// # Example
/// ```
/// use adjutant_agent::sections::{SectionKind, Sections, section_fn};
///
/// let notes = section_fn(SectionKind::NotesProtocol, async |cx| {
///     Ok(cx.has_tool("list_notes").then_some("Look for notes of other agents before you start."))
/// });
/// let sections = Sections::default().section(notes);
/// ```
pub fn section_fn<F, Fut, T>(kind: SectionKind, make: F) -> FnSection<F>
where
    F: Fn(SectionContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Option<T>, BoxError>> + Send,
    T: Into<Arc<str>>,
{
    FnSection { kind, make }
}

/// The ready section of [`SectionKind::Identity`]: the agent's name, its description, and the task that it was given.
///
/// For agents that get tasks from others; blank and unknown parts are omitted.
pub fn identity(description: impl Into<Arc<str>>) -> impl Section {
    let description: Arc<str> = description.into();
    section_fn(SectionKind::Identity, move |cx: SectionContext| {
        let description: String = description
            .trim()
            .chars()
            .take(MAX_DESCRIPTION_CHARS)
            .collect();
        async move {
            let who = &cx.who;
            let lines = [
                ("Name", &*who.name),
                ("Description", &description),
                ("Task", who.task.as_deref().unwrap_or("")),
            ];
            let lines = lines.iter().filter(|(_, text)| !text.trim().is_empty());
            Ok(Some(
                lines
                    .map(|(what, text)| format!("{what}: {}", text.trim()))
                    .collect::<Vec<_>>()
                    .join("\n"),
            ))
        }
    })
}

#[async_trait]
impl Section for TextSection {
    fn kind(&self) -> SectionKind {
        self.kind.clone()
    }

    async fn render(&self, _: &SectionContext) -> Result<Option<Arc<str>>, InstructionError> {
        Ok(Some(Arc::clone(&self.text)))
    }
}

#[async_trait]
impl<F, Fut, T> Section for FnSection<F>
where
    F: Fn(SectionContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Option<T>, BoxError>> + Send,
    T: Into<Arc<str>>,
{
    fn kind(&self) -> SectionKind {
        self.kind.clone()
    }

    async fn render(&self, cx: &SectionContext) -> Result<Option<Arc<str>>, InstructionError> {
        let made = (self.make)(cx.clone()).await;
        made.map(|text| text.map(Into::into))
            .map_err(InstructionError::from)
    }
}

impl<F> fmt::Debug for FnSection<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnSection")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
