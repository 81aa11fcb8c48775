//! The brief: the text about a task for its agent, with each part bounded and in tags that it cannot close.

use adjutant_llm::{Origin, ThreadId, UserMessage};

use crate::text::{cut_chars, escape_tags};

/// The largest number of characters of a task, and of its context.
pub(super) const MAX_CONTEXT_CHARS: usize = 16_000;

/// The tags of a brief; texts in them are escaped.
const CONTEXT: &str = "delegation_context";
const HANDOFF: &str = "handoff_context";

/// The introduction of the criteria for completion.
const CRITERIA: &str = "\
The task is done when all of the following is shown. In `tests_run`, repeat each of these lines and add what shows it:";

/// The text about a task for its agent.
#[derive(Debug)]
pub(super) struct Brief<'a> {
    pub(super) from: &'a ThreadId,
    pub(super) context: &'a str,
    /// The message of the peer that had the task, and its thread.
    pub(super) handoff: Option<(&'a str, &'a ThreadId)>,
    /// The lessons of earlier failures, in their tags.
    pub(super) reflections: &'a str,
    pub(super) task: &'a str,
    /// The criteria for its completion.
    pub(super) criteria: &'a [String],
}

impl Brief<'_> {
    /// The messages, in order; the task is last.
    pub(super) fn messages(&self) -> Vec<UserMessage> {
        let origin = || Origin::Task {
            from: self.from.clone(),
        };
        let mut messages = Vec::with_capacity(4);
        if !self.context.trim().is_empty() {
            messages.push(UserMessage {
                origin: origin(),
                ..UserMessage::text(wrap(CONTEXT, self.context))
            });
        }
        if let Some((said, peer)) = self.handoff {
            let origin = Origin::Peer { from: peer.clone() };
            messages.push(UserMessage {
                origin,
                ..UserMessage::text(wrap(HANDOFF, said))
            });
        }
        if !self.reflections.trim().is_empty() {
            messages.push(UserMessage {
                origin: origin(),
                ..UserMessage::text(self.reflections.to_owned())
            });
        }
        let mut task = escape_tags(&cut_chars(self.task, MAX_CONTEXT_CHARS));
        if !self.criteria.is_empty() {
            let criteria = cut_chars(&self.criteria.join("\n- "), MAX_CONTEXT_CHARS).into_owned();
            task = format!("{task}\n\n{CRITERIA}\n- {}", escape_tags(&criteria));
        }
        messages.push(UserMessage {
            origin: origin(),
            ..UserMessage::text(task)
        });
        messages
    }
}

/// A text in tags with that name, cut to the limit of a brief.
fn wrap(tag: &str, text: &str) -> String {
    format!(
        "<{tag}>\n{}\n</{tag}>",
        escape_tags(cut_chars(text, MAX_CONTEXT_CHARS).trim_end())
    )
}

#[cfg(test)]
mod tests {
    use super::wrap;
    use crate::text::cut_chars;

    #[test]
    fn text_is_cut_at_a_character_when_it_is_too_long() {
        assert_eq!(cut_chars("äöü", 3), "äöü");
        assert_eq!(
            cut_chars("äöüß!", 3),
            "äöü\n[cut here: 2 characters are left out]"
        );
    }

    #[test]
    fn tags_are_defused_when_a_text_holds_them() {
        let text = "a < b <i> </delegation_context> < / Identity> <prior_reflections x='1'>";
        let expected = "<delegation_context>\na < b <i> &lt;/delegation_context> &lt; / Identity> \
            &lt;prior_reflections x='1'>\n</delegation_context>";
        assert_eq!(wrap("delegation_context", text), expected);
    }
}
