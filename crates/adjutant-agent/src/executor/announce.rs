//! Announcements: system prompt and tools of a session stay as they began, and what changes is appended to the conversation.
//!
//! A changed beginning costs the prompt cache of the whole conversation, and some models refuse it: they bind their thinking
//! to everything before it. Source: "Preserved thinking", platform.claude.com, 2026-11.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use adjutant_core::{Digest, Memo, Prefix, Run, RunNo};
use adjutant_llm::{
    Content, Edit, EditError, Entry, EntryId, FinishReason, Origin, ToolChange, ToolName,
    UserMessage, View,
};
use adjutant_tool::Toolset;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::engine::{Stage, TurnPlan};
use crate::{
    floor::FloorMemo,
    sections::{GAP, SectionKind, tags},
    setup::Setup,
};

/// The key of the memo, and the author of the messages.
pub(crate) const KEY: &str = "announced";
/// The tag of text that is not written by the user, although it is in a message of the user.
const TAG: &str = "system-reminder";

/// The announcements that the conversation holds, by the entries that hold them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Announced {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sections: BTreeMap<Arc<str>, AnnouncedSection>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tools: BTreeMap<ToolName, EntryId>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    server_tools: BTreeMap<ToolName, EntryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<AnnouncedOutput>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AnnouncedSection {
    /// The digest of its text; `None` if it was announced that it no longer applies.
    digest: Option<Digest>,
    at: EntryId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AnnouncedOutput {
    run: RunNo,
    at: EntryId,
}

impl Setup {
    /// Returns this setup with the system prompt that the session began with, unless nothing has changed.
    ///
    /// Another agent that continues the session brings its own prompt, except to models that refuse it: those are sent the
    /// recorded beginning.
    pub(crate) fn keeping(&self, run: &Run) -> Option<Self> {
        if run.turn().0 == 0 {
            // No request was made yet.
            return None;
        }
        let terms = run.terms();
        let known = terms.and_then(|terms| terms.system.clone());
        let (known, now) = (known.unwrap_or_default(), Arc::clone(&self.system));
        let is_bound = run.prefix().is_some_and(|prefix| prefix.system != now);
        if known == now && !is_bound && !run.memos().contains_key(KEY) {
            return None;
        }
        let agent = terms.and_then(|terms| terms.agent.as_ref());
        let is_same_agent = agent.is_none_or(|agent| *agent == self.who.config_name);
        Some(Self {
            system: if is_same_agent {
                known
            } else {
                Arc::clone(&now)
            },
            now: Some(Box::new(now)),
            ..self.clone()
        })
    }
}

/// Returns the sections of a system prompt in their tags, by name. A text without sections is the instructions.
fn sections(system: &str) -> BTreeMap<&str, Cow<'_, str>> {
    if system.trim().is_empty() {
        return BTreeMap::new();
    }
    let (mut sections, mut rest) = (BTreeMap::new(), system);
    while let Some((tag, text)) = first_section(rest) {
        sections.insert(tag, Cow::Borrowed(text));
        rest = &rest[text.len()..];
        match rest.strip_prefix(GAP) {
            Some(more) => rest = more,
            None if rest.is_empty() => return sections,
            None => break,
        }
    }
    let tag = SectionKind::Instructions.tag();
    [(tag, tags::wrap(tag, system, &[]).into())].into()
}

/// Returns the name and the text of the section that a prompt starts with. Within a section, tags of sections are defused.
fn first_section(prompt: &str) -> Option<(&str, &str)> {
    let (tag, _) = prompt.strip_prefix('<')?.split_once(">\n")?;
    let end = format!("\n</{tag}>");
    let length = prompt.find(&end)? + end.len();
    Some((tag, &prompt[..length]))
}

impl Stage<'_> {
    /// Appends what the model does not know yet: changes of the system prompt and of the tools, and the wanted answer.
    ///
    /// # Errors
    /// If the message does not fit the view.
    pub(crate) fn announce(&self, plan: &mut TurnPlan) -> Result<(), EditError> {
        // A paused reply must stay the last message.
        if is_paused(&plan.view) || (plan.stop.is_some() && !self.sight.last) {
            return Ok(());
        }
        if FloorMemo::read(&self.sight.memos).offers {
            self.keep_offered(plan);
        }
        let memo = self.sight.memos.get(KEY);
        let known = memo
            .and_then(|memo| Announced::deserialize(memo).ok())
            .unwrap_or_default();
        let (mut announced, at) = (known.clone(), plan.next_entry());
        let mut texts = Vec::new();
        texts.extend(self.announce_sections(plan, &mut announced, at));
        texts.extend(self.announce_output(plan, &mut announced, at));
        let tools = self.announce_tools(plan, &mut announced, at);
        if texts.is_empty() && tools.is_none() {
            return Ok(());
        }
        let message = UserMessage {
            origin: Origin::Reminder { by: KEY.into() },
            tools: tools.map(Arc::new),
            ..texts
                .into_iter()
                .map(Content::text)
                .collect::<Vec<_>>()
                .into()
        };
        let entry = Entry::User(message);
        plan.edit(vec![Edit::Append { entry }])?;
        plan.memos.push(Memo {
            key: KEY.into(),
            value: json!(announced),
        });
        Ok(())
    }

    fn announce_sections(
        &self,
        plan: &TurnPlan,
        announced: &mut Announced,
        at: EntryId,
    ) -> Option<String> {
        let now = &**self.setup.now.as_ref()?;
        let prefix = self.sight.prefix.as_ref();
        let sent = match prefix.filter(|_| self.model.info().thinking_binding) {
            Some(prefix) => &prefix.system,
            None => &self.setup.system,
        };
        if sent == now && announced.sections.is_empty() {
            return None;
        }
        let (sent, now) = (sections(sent), sections(now));
        let known = std::mem::take(&mut announced.sections);
        let names: BTreeSet<&str> = [&sent, &now]
            .into_iter()
            .flat_map(BTreeMap::keys)
            .copied()
            .chain(known.keys().map(|name| &**name))
            .collect();
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for name in names {
            let before = known
                .get(name)
                .filter(|section| message(&plan.view, section.at).is_some());
            let text = now.get(name);
            let digest = || text.map(|text| Digest::compute(text.as_bytes()));
            let is_known = match before {
                Some(section) => section.digest == digest(),
                None => sent.get(name) == text,
            };
            if is_known {
                let before = before.map(|before| (name.into(), before.clone()));
                announced.sections.extend(before);
                continue;
            }
            match text {
                Some(text) => changed.push(&**text),
                None => gone.push(name),
            }
            let digest = digest();
            announced
                .sections
                .insert(name.into(), AnnouncedSection { digest, at });
        }
        if changed.is_empty() && gone.is_empty() {
            return None;
        }
        let mut text =
            "Parts of your system prompt have changed since this conversation began.".to_owned();
        if !changed.is_empty() {
            text += " These are in place of what it says under the same names:\n\n";
            text += &changed.join(GAP);
        }
        if !gone.is_empty() {
            text += &format!("\n\nThese no longer apply: {}.", gone.join(", "));
        }
        Some(reminder(&text))
    }

    fn announce_output(
        &self,
        plan: &TurnPlan,
        announced: &mut Announced,
        at: EntryId,
    ) -> Option<String> {
        let goal = self.setup.goal.as_ref()?;
        let has_tools = !self.tools.is_empty() || !plan.offered.is_empty();
        let words = goal.words(&**self.model, &self.setup.options, has_tools)?;
        let text = reminder(&words);
        let is_known = announced.output.as_ref().is_some_and(|output| {
            output.run == self.sight.run
                && message(&plan.view, output.at).is_some_and(|message| {
                    let mut texts = message.content.iter().filter_map(Content::as_text);
                    texts.any(|known| *known == *text)
                })
        });
        if is_known {
            return None;
        }
        let run = self.sight.run;
        announced.output = Some(AnnouncedOutput { run, at });
        Some(text)
    }

    /// The change of the tools since the session declared them, for models that refuse another declaration.
    fn announce_tools(
        &self,
        plan: &mut TurnPlan,
        announced: &mut Announced,
        at: EntryId,
    ) -> Option<ToolChange> {
        let info = self.model.info();
        if !info.thinking_binding {
            return None;
        }
        let tools = self.tools.with(&Toolset::merge(&plan.offered));
        let (provider, server_tools) = (info.provider(), &self.setup.options.server_tools);
        let Some(prefix) = &self.sight.prefix else {
            plan.prefix = Some(Arc::new(Prefix {
                system: Arc::clone(&self.setup.system),
                tools: Arc::clone(tools.decls()),
                provider: provider.into(),
                server_tools: server_tools.clone(),
            }));
            return None;
        };
        let (added, removed) = Known {
            declared: &prefix.tools,
            announced: &mut announced.tools,
            added: |change| &change.added,
            name: |tool| tool.name.clone(),
        }
        .diff(&plan.view, tools.decls(), at);
        let mut change = ToolChange {
            added,
            removed,
            ..ToolChange::default()
        };
        if *prefix.provider == *provider {
            change.provider = provider.into();
            (change.server_tools, change.removed_server_tools) = Known {
                declared: &prefix.server_tools,
                announced: &mut announced.server_tools,
                added: |change| &change.server_tools,
                name: server_tool_name,
            }
            .diff(&plan.view, server_tools, at);
        }
        (!change.is_empty()).then_some(change)
    }
}

/// The tools of one kind that the model knows: the declared ones, with the changes in messages.
struct Known<'a, T> {
    declared: &'a [T],
    /// The newest message about each tool.
    announced: &'a mut BTreeMap<ToolName, EntryId>,
    /// The tools of this kind in a change.
    added: fn(&ToolChange) -> &[T],
    name: fn(&T) -> ToolName,
}

impl<T: Clone + PartialEq> Known<'_, T> {
    /// Returns the new or changed tools and the removed ones, and records that entry `at` announces them.
    fn diff(self, view: &View, now: &[T], at: EntryId) -> (Vec<T>, Vec<ToolName>) {
        let Self {
            declared,
            announced,
            added,
            name,
        } = self;
        // A compaction may have taken the message, so that the model knows the declaration again.
        announced.retain(|_, at| message(view, *at).is_some());
        let mut known: BTreeMap<ToolName, &T> =
            declared.iter().map(|tool| (name(tool), tool)).collect();
        for (tool, at) in &*announced {
            let change = message(view, *at).and_then(|message| message.tools.as_deref());
            let definition =
                change.and_then(|change| added(change).iter().find(|it| name(it) == *tool));
            match definition {
                Some(definition) => known.insert(tool.clone(), definition),
                None => known.remove(tool),
            };
        }
        let mut new = Vec::new();
        for tool in now {
            let before = known.remove(&name(tool));
            if before != Some(tool) {
                announced.insert(name(tool), at);
                new.push(tool.clone());
            }
        }
        let gone: Vec<ToolName> = known.into_keys().collect();
        announced.extend(gone.iter().map(|tool| (tool.clone(), at)));
        (new, gone)
    }
}

/// Returns the name of a tool that a provider runs: some have none but their type.
fn server_tool_name(tool: &Value) -> ToolName {
    let text = |member| tool.get(member).and_then(Value::as_str);
    text("name").or(text("type")).unwrap_or_default().into()
}

/// Returns the announcement in an entry, unless another entry replaces it.
fn message(view: &View, at: EntryId) -> Option<&UserMessage> {
    let stored = view.items().get(view.items().position(at)?)?;
    match &stored.entry {
        Entry::User(message) => {
            matches!(&message.origin, Origin::Reminder { by } if **by == *KEY).then_some(message)
        }
        _ => None,
    }
}

/// True if the last entry is a reply that the provider paused.
fn is_paused(view: &View) -> bool {
    let last = view.items().last();
    last.is_some_and(
        |last| matches!(&last.entry, Entry::Turn(turn) if turn.reply().stop == FinishReason::Paused),
    )
}

/// Wraps a text in tags that mark it as not written by the user.
fn reminder(text: &str) -> String {
    let text = text
        .replace(&format!("<{TAG}"), &format!("&lt;{TAG}"))
        .replace(&format!("</{TAG}"), &format!("&lt;/{TAG}"));
    format!("<{TAG}>\n{text}\n</{TAG}>")
}
