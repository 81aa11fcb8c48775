//! Validates skills: their directories, and the names that agents use.

use adjutant_skills::{Root, Severity, Skill, Skills};

use super::{Check, shown};
use crate::manifest::{Manifest, node::At, path::Kind};

/// The skills of a manifest.
pub(super) struct FoundSkills {
    pub(super) names: Vec<String>,
}

/// Reads the directories; `None` if one of them cannot be read, because names cannot be checked then.
pub(super) fn find(
    check: &mut Check<'_>,
    manifest: &mut Manifest,
    at: At<'_>,
) -> Option<FoundSkills> {
    let (mut roots, mut is_whole) = (Vec::new(), true);
    for (n, folder) in manifest.skill_folders.iter_mut().enumerate() {
        let (at, before) = (at.key("skill_folders").item(n), check.problems.iter().len());
        check.contained(folder, at, Kind::Folder);
        if check.problems.iter().len() > before {
            is_whole = false;
            continue;
        }
        let root = Root::named(folder.clone()).within(at.mark.source.folder.clone());
        match Skills::load([root.clone()]) {
            Ok(skills) => {
                for finding in skills.findings() {
                    let place = &finding.place;
                    let message = format!(
                        "{}:{}:{}: {}",
                        place.file, place.line, place.column, finding.message
                    );
                    match finding.severity {
                        Severity::Error => check.tell(at, message),
                        _ => check.warn(at.mark, message),
                    }
                }
                if skills.is_empty() {
                    check.warn(
                        at.mark,
                        format!("{}: there is no skill in it", shown(folder)),
                    );
                }
                roots.push(root);
            }
            Err(error) => {
                is_whole = false;
                check.tell(at, error.message());
            }
        }
    }
    let skills = Skills::load(roots).ok().filter(|_| is_whole)?;
    Some(FoundSkills {
        names: skills.iter().map(Skill::name).map(str::to_owned).collect(),
    })
}
