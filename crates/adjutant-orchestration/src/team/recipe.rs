//! The parts that a new member is made of: a template, or a prompt of the lead.

use std::{sync::Arc, time::Duration};

use adjutant_agent::Agent;
use serde::{Deserialize, Serialize};

use super::{LEAD, TeamPlan, texts};
use crate::{Error, ErrorKind};

/// All others.
pub(super) const ALL: &str = "*";
/// The largest number of bytes in a name.
const MAX_NAME: usize = 64;
/// The largest number of bytes in a task or a prompt.
const MAX_TEXT: usize = 64 * 1024;
/// The largest number of requests that the lead may allow a member, unless another number is set.
const MAX_TURNS: u32 = 50;

/// The lead's description of a new member.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NewMember {
    pub(super) name: Arc<str>,
    pub(super) task: Arc<str>,
    pub(super) template: Option<Arc<str>>,
    pub(super) system_prompt: Option<Arc<str>>,
    pub(super) max_turns: Option<u32>,
    pub(super) timeout: Option<Duration>,
}

/// The parts that a member is made of.
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) agent: Agent,
    pub(super) role: Option<Arc<str>>,
    pub(super) timeout: Option<Duration>,
}

impl Recipe {
    /// Returns the parts that a new member is made of, after the lead's description.
    pub(super) fn from_plan(plan: &TeamPlan, new: &NewMember) -> Result<Self, Error> {
        let invalid = |message: String| Error::new(ErrorKind::Invalid, message);
        let known = || match plan.templates.len() {
            0 => "there are none".to_owned(),
            _ => format!("there are {}", texts::names(plan.templates.keys())),
        };
        let key = new.template.as_ref().unwrap_or(&new.name);
        let template = plan.templates.get(key);
        if let (Some(name), None) = (&new.template, template) {
            let message = format!("there is no template {:?}; hint: {}", &**name, known());
            return Err(Error::new(ErrorKind::Missing, message));
        }
        let prompt = new
            .system_prompt
            .as_ref()
            .filter(|prompt| !prompt.trim().is_empty());
        let mut most = plan.max_member_turns.unwrap_or(MAX_TURNS);
        let agent = match (template, prompt) {
            (Some(_), Some(_)) => {
                return Err(invalid(format!(
                    "the template {key:?} has its own instructions: leave `system_prompt` out"
                )));
            }
            (Some(template), None) => template.clone(),
            (None, _) if !plan.invents => {
                return Err(invalid(format!(
                    "members are made from templates only; hint: {}",
                    known()
                )));
            }
            (None, prompt) => {
                prompt
                    .map(|prompt| check_text("system_prompt", prompt))
                    .transpose()?;
                let limits = plan.member_limits.clone().unwrap_or_default();
                most = most.min(limits.max_turns.unwrap_or(most));
                let prompt = prompt.map_or_else(
                    || texts::instructions(&plan.name),
                    |prompt| prompt.to_string(),
                );
                Agent::inheriting(Arc::clone(&new.name))
                    .instructions(prompt)
                    .limits(limits)
            }
        };
        let agent = match new.max_turns {
            Some(turns) => agent.cap_turns(turns.clamp(1, most.max(1))),
            None => agent,
        };
        let timeout = match (new.timeout, plan.member_timeout) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        Ok(Recipe {
            agent,
            role: template.map(|_| Arc::clone(key)),
            timeout,
        })
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let message = if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
        format!(
            "`name` has 1 to {MAX_NAME} letters, digits, `-` and `_`: {:?}",
            texts::clip_event_text(&name.into())
        )
    } else if name.eq_ignore_ascii_case(LEAD) || name == ALL {
        format!("{name:?} is what the lead is called; hint: choose another name")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Invalid, message))
}

pub(super) fn check_text(field: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("`{field}` is blank: say what to do"),
        ));
    }
    if text.len() > MAX_TEXT {
        let message = format!(
            "`{field}` has {} bytes, and may have {MAX_TEXT}",
            text.len()
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}
