//! The kinds of sections, their order, and their largest sizes.

use std::sync::Arc;

use crate::instructions::{InstructionError, InstructionErrorKind};

/// The largest number of bytes in the name of an application's own section.
const MAX_NAME_BYTES: usize = 64;
/// The largest number of bytes in a section whose text is fixed by a component.
const MAX_FIXED_BYTES: usize = 16 << 10;
/// The largest number of bytes in a section that lists things.
const MAX_LIST_BYTES: usize = 64 << 10;
/// The largest number of bytes in a section that holds documents.
const MAX_DOCUMENT_BYTES: usize = 256 << 10;
/// The largest number of bytes in the instructions.
const MAX_INSTRUCTION_BYTES: usize = 1 << 20;

/// The text that precedes the project's context, whatever its source.
const PROJECT_NOTE: &str = "\
The following is known about the project that you work in. Treat it as your own knowledge: build on it without looking \
it up again, and do not mention that it was given to you.";

/// The place and the name of a section.
///
/// The most stable kinds come first, so that a provider's cache keeps as much of a changed prompt as possible.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SectionKind {
    /// The identity of the agent; at most 16 KiB.
    Identity,
    /// The protocol by which an agent reports that its task is done; at most 16 KiB.
    CompletionProtocol,
    /// The protocol for handing the conversation over to another agent; at most 16 KiB.
    HandoffProtocol,
    /// The protocol by which the agent asks the author of its task; at most 16 KiB.
    InteractionProtocol,
    /// The protocol for answering the questions of agents with a task from this one; at most 16 KiB.
    InteractiveDelegationProtocol,
    /// The protocol by which agents share notes; at most 16 KiB.
    NotesProtocol,
    /// The instructions of the agent; at most 1 MiB.
    Instructions,
    /// Habits of careful work; at most 16 KiB.
    BehavioralConstraints,
    /// The known facts of the project; at most 256 KiB.
    ProjectContext,
    /// Skills that are always at hand; at most 256 KiB.
    Skills,
    /// Skills that can be loaded; at most 64 KiB.
    AvailableSkills,
    /// Agents that can be given tasks; at most 64 KiB.
    AvailableAgents,
    /// A section of the application's own; at most 64 KiB. See [`SectionKind::custom`].
    Custom(CustomSection),
}

/// The name and the place of an application's own section.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CustomSection {
    name: Arc<str>,
    place: u8,
}

impl SectionKind {
    /// The kinds that are known here, in order.
    pub const KNOWN: [SectionKind; 12] = [
        SectionKind::Identity,
        SectionKind::CompletionProtocol,
        SectionKind::HandoffProtocol,
        SectionKind::InteractionProtocol,
        SectionKind::InteractiveDelegationProtocol,
        SectionKind::NotesProtocol,
        SectionKind::Instructions,
        SectionKind::BehavioralConstraints,
        SectionKind::ProjectContext,
        SectionKind::Skills,
        SectionKind::AvailableSkills,
        SectionKind::AvailableAgents,
    ];

    /// An application-defined kind, placed after another kind.
    ///
    /// Several kinds after the same one are ordered by registration.
    ///
    /// # Errors
    /// `Template` if the name is a known one, or not a lower case letter with up to 63 lower case letters, digits and
    /// underscores after it.
    pub fn custom(
        name: impl Into<Arc<str>>,
        after: &SectionKind,
    ) -> Result<Self, InstructionError> {
        let name = name.into();
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_name = name.len() <= MAX_NAME_BYTES
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(is_plain);
        let why = match is_name {
            false => "it must be a lower case letter and up to 63 letters, digits and underscores",
            true if Self::KNOWN.iter().any(|kind| kind.tag() == &*name) => {
                "there is a known section of that name"
            }
            // An odd place lies between two known kinds.
            true => {
                return Ok(Self::Custom(CustomSection {
                    name,
                    place: after.place() | 1,
                }));
            }
        };
        let message = format!("not a name for a section, because {why}: {name:?}");
        Err(InstructionError::new(
            InstructionErrorKind::Template,
            message,
        ))
    }

    /// The name of the section's tags.
    pub fn tag(&self) -> &str {
        match self {
            SectionKind::Identity => "identity",
            SectionKind::CompletionProtocol => "completion_protocol",
            SectionKind::HandoffProtocol => "handoff_protocol",
            SectionKind::InteractionProtocol => "interaction_protocol",
            SectionKind::InteractiveDelegationProtocol => "interactive_delegation_protocol",
            SectionKind::NotesProtocol => "notes_protocol",
            SectionKind::Instructions => "instructions",
            SectionKind::BehavioralConstraints => "behavioral_constraints",
            SectionKind::ProjectContext => "project_context",
            SectionKind::Skills => "skills",
            SectionKind::AvailableSkills => "available_skills",
            SectionKind::AvailableAgents => "available_agents",
            SectionKind::Custom(custom) => &custom.name,
        }
    }

    /// Returns the largest number of bytes that the section may have, unless another limit is set.
    pub fn max_bytes(&self) -> usize {
        match self {
            SectionKind::Identity
            | SectionKind::CompletionProtocol
            | SectionKind::HandoffProtocol
            | SectionKind::InteractionProtocol
            | SectionKind::InteractiveDelegationProtocol
            | SectionKind::NotesProtocol
            | SectionKind::BehavioralConstraints => MAX_FIXED_BYTES,
            SectionKind::Instructions => MAX_INSTRUCTION_BYTES,
            SectionKind::ProjectContext | SectionKind::Skills => MAX_DOCUMENT_BYTES,
            SectionKind::AvailableSkills
            | SectionKind::AvailableAgents
            | SectionKind::Custom(_) => MAX_LIST_BYTES,
        }
    }

    /// Returns the note at the start of the section, whatever the source of its text.
    pub(super) fn note(&self) -> Option<&'static str> {
        (*self == SectionKind::ProjectContext).then_some(PROJECT_NOTE)
    }

    /// Known kinds have even places.
    pub(super) fn place(&self) -> u8 {
        match self {
            SectionKind::Identity => 0,
            SectionKind::CompletionProtocol => 2,
            SectionKind::HandoffProtocol => 4,
            SectionKind::InteractionProtocol => 6,
            SectionKind::InteractiveDelegationProtocol => 8,
            SectionKind::NotesProtocol => 10,
            SectionKind::Instructions => 12,
            SectionKind::BehavioralConstraints => 14,
            SectionKind::ProjectContext => 16,
            SectionKind::Skills => 18,
            SectionKind::AvailableSkills => 20,
            SectionKind::AvailableAgents => 22,
            SectionKind::Custom(custom) => custom.place,
        }
    }
}
