//! The origin of a session, and the sessions that were forked from it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Sessions, half};
use crate::journal::{JournalError, JournalErrorKind, LogId, LogInfo, LogQuery};

/// The number of sessions that a tree shows, ancestors not counted.
const MAX_BRANCHES: usize = 10_000;
/// The number of ancestors that a tree shows.
const MAX_ANCESTORS: usize = 1_000;
/// The number of sessions per query.
const PAGE: usize = 500;

/// The ancestors of a session, and its forks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionTree {
    /// The sessions that it was forked from, the oldest first.
    pub ancestors: Vec<LogInfo>,
    /// The session that the oldest of them was forked from, if it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<LogId>,
    /// The session itself, and after each session its forks.
    pub branches: Vec<Branch>,
    /// True if the tree was cut.
    pub is_cut: bool,
}

/// A session in a tree. Its labels, its end and where it was forked stand in `info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Branch {
    /// The number of forks between it and the requested session.
    pub depth: usize,
    /// The known facts about it.
    pub info: LogInfo,
}

impl Sessions {
    /// Returns the ancestors of a session, and all its forks; each session once, even if their data contradict.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Io`.
    pub async fn tree(&self, id: &LogId) -> Result<SessionTree, JournalError> {
        let info = self.journal.info(id).await?;
        let mut seen = BTreeSet::from([id.clone()]);
        let mut tree = SessionTree {
            ancestors: Vec::new(),
            missing: None,
            branches: Vec::new(),
            is_cut: false,
        };
        self.climb(&info, &mut tree, &mut seen).await?;
        // Children are pushed in reverse, so that the first one follows its parent.
        let mut open = vec![(0, info)];
        while let Some((depth, info)) = open.pop() {
            let mut forks = self.forks(&info.log, &mut tree, &mut seen).await?;
            forks.reverse();
            open.extend(forks.into_iter().map(|fork| (depth + 1, fork)));
            tree.branches.push(Branch { depth, info });
        }
        Ok(tree)
    }

    async fn climb(
        &self,
        info: &LogInfo,
        tree: &mut SessionTree,
        seen: &mut BTreeSet<LogId>,
    ) -> Result<(), JournalError> {
        let mut next = info.about.parent.clone();
        while let Some((parent, _)) = next.take() {
            if !seen.insert(parent.clone()) {
                break;
            }
            if tree.ancestors.len() == MAX_ANCESTORS {
                tree.is_cut = true;
                break;
            }
            match self.journal.info(&parent).await {
                Ok(info) => {
                    next.clone_from(&info.about.parent);
                    tree.ancestors.push(info);
                }
                Err(error) if error.kind == JournalErrorKind::Missing => {
                    tree.missing = Some(parent)
                }
                Err(error) => return Err(error),
            }
        }
        tree.ancestors.reverse();
        Ok(())
    }

    /// Returns the sessions that were forked from a log and were not seen yet, the oldest first.
    async fn forks(
        &self,
        of: &LogId,
        tree: &mut SessionTree,
        seen: &mut BTreeSet<LogId>,
    ) -> Result<Vec<LogInfo>, JournalError> {
        let mut forks = Vec::new();
        let mut query = LogQuery {
            parent: Some(of.clone()),
            limit: PAGE,
            ..LogQuery::default()
        };
        loop {
            let page = self.journal.list(&query).await?;
            for info in page
                .logs
                .into_iter()
                .filter(|info| !half::is_half(&info.log))
            {
                if seen.contains(&info.log) {
                    continue;
                }
                if seen.len() - tree.ancestors.len() > MAX_BRANCHES {
                    tree.is_cut = true;
                    return Ok(forks);
                }
                seen.insert(info.log.clone());
                forks.push(info);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        forks.sort_by(|one, other| (one.created_ms, &one.log).cmp(&(other.created_ms, &other.log)));
        Ok(forks)
    }
}
