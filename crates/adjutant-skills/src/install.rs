//! Gives skills to an agent: sections of its system prompt, and the tools.

use adjutant_agent::{
    Agent,
    points::BeforeModel,
    sections::{SectionKind, section_text},
};
use adjutant_tool::Tools;

use crate::{Skill, Skills, loaded::Loaded, tools};

/// The text before the list of skills that can be loaded.
const AVAILABLE: &str = "\
Each of these skills holds instructions for a kind of task. Before you begin a task that one of them fits, load it with \
load_skill, and follow what it says. Load none that does not fit.";

impl Skills {
    /// Adds the used skills to an agent.
    ///
    /// Skills without a description are included in the section `skills`; the others are listed in `available_skills`
    /// and loaded with the tool `load_skill`. A loaded skill survives compaction. Files of a skill are read with
    /// `read_skill_file`. Unused parts are not added: an agent without skills stays unchanged.
    #[must_use]
    pub fn install(&self, agent: Agent) -> Agent {
        let (mut agent, mut tools) = (agent, Tools::new("skills"));
        for skill in self.iter().filter(|skill| skill.is_inline()) {
            let text = format!("## {}\n\n{}", skill.name(), skill.text());
            agent = agent.section(section_text(SectionKind::Skills, text));
        }
        let lines: Vec<String> = self.iter().filter_map(Skill::listing).collect();
        if !lines.is_empty() {
            let text = format!("{AVAILABLE}\n\n{}", lines.join("\n"));
            let loaded = Loaded::default();
            tools = tools.tool(tools::load_skill(self, &loaded));
            agent = agent
                .section(section_text(SectionKind::AvailableSkills, text))
                .on::<BeforeModel>(loaded);
        }
        if self.iter().any(|skill| !skill.files().is_empty()) {
            tools = tools.tool(tools::read_skill_file(self));
        }
        if tools.names().next().is_none() {
            agent
        } else {
            agent.toolbox(tools)
        }
    }
}
