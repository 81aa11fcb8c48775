//! The parts of a system prompt: components register them, and they are rendered once when a run starts.

mod kind;
mod ready;
pub(crate) mod tags;

use std::{error::Error as StdError, fmt, sync::Arc};

use adjutant_llm::ToolName;
use adjutant_tool::Identity;
use async_trait::async_trait;
use serde_json::{Map, Value};

pub use kind::{CustomSection, SectionKind};
pub use ready::{
    BEHAVIORAL_CONSTRAINTS, FnSection, TextSection, identity, section_fn, section_text,
};

use crate::instructions::{
    InstructionContext, InstructionError, InstructionErrorKind, Instructions,
};
use adjutant_core::RunNo;

/// The gap between two texts of one section, and between two sections.
pub(crate) const GAP: &str = "\n\n";

/// An error of a function that makes a section.
type BoxError = Box<dyn StdError + Send + Sync>;

/// A part of a system prompt.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a section of a system prompt",
    note = "`section_text` makes one of a text, `section_fn` of a function"
)]
pub trait Section: Send + Sync {
    /// Returns the kind of the section: its place and its name.
    fn kind(&self) -> SectionKind;

    /// The text of the section in this run; none, or a blank one, if it does not apply.
    ///
    /// # Errors
    /// The error of the section; the run fails with it.
    ///
    /// # Panics
    /// A panic propagates to the caller of the resolver: nothing is held across the call, so catching it is safe.
    async fn render(&self, cx: &SectionContext) -> Result<Option<Arc<str>>, InstructionError>;
}

/// The data of the starting run that a section sees.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionContext {
    /// The identity of the agent that is to run.
    pub who: Arc<Identity>,
    /// The values that the agent and the run know by name.
    pub state: Arc<Map<String, Value>>,
    /// The number of the run.
    pub run: RunNo,
    /// The tools that the run starts with, in order.
    pub tools: Arc<[ToolName]>,
}

/// The sections that the components of an agent registered.
///
/// Sections of one kind are grouped, in order of registration; a duplicate text is not repeated.
#[derive(Clone, Default)]
pub struct Sections {
    sections: Vec<Arc<dyn Section>>,
    off: Vec<SectionKind>,
    limits: Vec<(SectionKind, usize)>,
}

/// The texts of one kind.
struct Group {
    kind: SectionKind,
    texts: Vec<Arc<str>>,
    bytes: usize,
}

/// The system prompt of a run: the instructions, and the sections around them.
///
/// Called when a run starts; the result is kept until it ends. Empty without a text.
///
/// Cancel: nothing is lost.
///
/// # Errors
/// The errors of [`Instructions::resolve`] and [`Sections::render`].
///
/// # Panics
/// If a source or a section panics; everything can be used again afterwards.
pub async fn resolve_system(
    instructions: &Instructions,
    sections: &Sections,
    cx: &SectionContext,
) -> Result<Arc<str>, InstructionError> {
    let text = instructions.resolve(cx.into()).await?;
    sections.render(text, cx).await
}

impl Sections {
    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: impl Section + 'static) -> Self {
        self.sections.push(Arc::new(section));
        self
    }

    /// Adds the sections, disabled kinds, and limits of another registry, after the existing ones.
    #[must_use]
    pub fn merge(mut self, others: &Sections) -> Self {
        self.sections.extend(others.sections.iter().cloned());
        self.off.extend(others.off.iter().cloned());
        self.limits.extend(others.limits.iter().cloned());
        self
    }

    /// Disables a kind, for existing and future registrations.
    #[must_use]
    pub fn without(mut self, kind: SectionKind) -> Self {
        self.off.push(kind);
        self
    }

    /// Sets how many bytes the section of a kind may have; the last one counts.
    ///
    /// [`SectionKind::max_bytes`] without it.
    #[must_use]
    pub fn max_bytes(mut self, kind: SectionKind, bytes: usize) -> Self {
        self.limits.push((kind, bytes));
        self
    }

    /// True if nothing is registered.
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The system prompt around these instructions.
    ///
    /// With instructions only, it is exactly their text. If another section has text, each section is written in tags
    /// of its name, in the order of [`SectionKind`]; text inside that looks like the tag of a section is escaped by
    /// writing its `<` as `&lt;`.
    ///
    /// # Errors
    /// The error of a section; `Limit` if one exceeds its maximum length: nothing is cut.
    ///
    /// # Panics
    /// If a section panics.
    pub async fn render(
        &self,
        instructions: Arc<str>,
        cx: &SectionContext,
    ) -> Result<Arc<str>, InstructionError> {
        let mut groups: Vec<Group> = Vec::new();
        self.put(&mut groups, SectionKind::Instructions, instructions)?;
        for section in &self.sections {
            let kind = section.kind();
            if self.off.contains(&kind) {
                continue;
            }
            let made = section.render(cx).await;
            let made = made.map_err(|error| {
                InstructionError::from_cause(
                    format!("section {} could not be made", kind.tag()),
                    error.into(),
                )
            });
            if let Some(text) = made? {
                self.put(&mut groups, kind, text)?;
            }
        }
        groups.sort_by_key(|group| group.kind.place());
        Ok(match groups.as_slice() {
            [] => "".into(),
            [
                Group {
                    kind: SectionKind::Instructions,
                    texts,
                    ..
                },
            ] => match texts.as_slice() {
                [text] => Arc::clone(text),
                texts => texts.join(GAP).into(),
            },
            groups => render_groups(groups).into(),
        })
    }

    /// Adds a text to the texts of its kind.
    fn put(
        &self,
        groups: &mut Vec<Group>,
        kind: SectionKind,
        text: Arc<str>,
    ) -> Result<(), InstructionError> {
        if text.trim().is_empty() || self.off.contains(&kind) {
            return Ok(());
        }
        let limit = self.limit(&kind);
        let known = groups.iter().position(|group| group.kind == kind);
        let group = match known {
            Some(at) => &mut groups[at],
            None => groups.push_mut(Group {
                kind,
                texts: Vec::new(),
                bytes: 0,
            }),
        };
        if group.texts.contains(&text) {
            return Ok(());
        }
        let gap = if group.texts.is_empty() { 0 } else { GAP.len() };
        group.bytes += gap + text.len();
        if group.bytes > limit {
            let message = format!(
                "section {} is longer than its limit: {limit} bytes",
                group.kind.tag()
            );
            return Err(InstructionError::new(InstructionErrorKind::Limit, message));
        }
        group.texts.push(text);
        Ok(())
    }

    fn limit(&self, kind: &SectionKind) -> usize {
        let set = self.limits.iter().rev().find(|(of, _)| of == kind);
        set.map_or_else(|| kind.max_bytes(), |(_, bytes)| *bytes)
    }
}

fn render_groups(groups: &[Group]) -> String {
    let kinds: Vec<&SectionKind> = groups.iter().map(|group| &group.kind).collect();
    let one = |group: &Group| {
        let note = group.kind.note().into_iter();
        let texts: Vec<&str> = note.chain(group.texts.iter().map(|text| &**text)).collect();
        tags::wrap(group.kind.tag(), &texts.join(GAP), &kinds)
    };
    groups.iter().map(one).collect::<Vec<_>>().join(GAP)
}

impl SectionContext {
    /// True if there is a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| &*tool.0 == name)
    }
}

impl From<&SectionContext> for InstructionContext {
    fn from(cx: &SectionContext) -> Self {
        Self {
            who: Arc::clone(&cx.who),
            state: Arc::clone(&cx.state),
            run: cx.run,
        }
    }
}

impl fmt::Debug for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.sections.iter().map(|section| section.kind()).collect();
        let mut shown = f.debug_struct("Sections");
        shown
            .field("sections", &kinds)
            .field("off", &self.off)
            .field("limits", &self.limits)
            .finish()
    }
}
