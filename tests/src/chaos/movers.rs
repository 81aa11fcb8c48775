//! Whoever changes agents and moves them: edits and updates, exports, imports, removals.

use std::{fs, sync::Arc, time::Duration};

use adjutant::runtime::{Goal, Home};
use tokio::time::{Instant, sleep};

use super::{
    field::{Told, revision},
    people::People,
    roll::{Listed, Survived},
};
use crate::kill::Rng;

/// How long it is between two changes at most.
const PAUSE_MS: u64 = 300;
/// How many imported agents there are at most.
const COPIES: usize = 2;
/// How long an agent that was imported may take until all that it remembers is there.
const REMEMBERS_WITHIN: Duration = Duration::from_secs(60);

impl People {
    /// One of them changes agents until it is over.
    pub(super) async fn update_on(self: Arc<Self>, mut rng: Rng) -> Result<(), String> {
        while !self.is_over() {
            sleep(Duration::from_millis(1 + rng.below(PAUSE_MS))).await;
            let _ = self.update(&mut rng).await?;
        }
        Ok(())
    }

    /// Edits the manifest of an agent and updates it; why that was not done, if it was not.
    pub(super) async fn update(&self, rng: &mut Rng) -> Result<Option<Told>, String> {
        let Some(entry) = self.roll.pick(rng, |it| it.file.is_some()) else {
            return Ok(None);
        };
        let Some((file, revision)) = self.roll.revise(entry.id) else {
            return Ok(None);
        };
        self.field.lay(file, revision)?;
        let told = self
            .field
            .command(&["agent", "update", &entry.name, "--trust"])
            .await?;
        if !self.counted(&told, |it| it.updates += 1) {
            return Ok(Some(told));
        }
        self.roll.acknowledge(entry.id, revision);
        Ok(None)
    }

    /// One of them exports and imports until it is over.
    pub(super) async fn carry_on(self: Arc<Self>, mut rng: Rng) -> Result<(), String> {
        for number in 0.. {
            sleep(Duration::from_millis(1 + rng.below(PAUSE_MS))).await;
            if self.is_over() {
                break;
            }
            let is_here = rng.below(2) == 0;
            // What is not done is counted.
            let _ = self.carry(number, is_here, &mut rng).await?;
            let copies = self
                .roll
                .all()
                .iter()
                .filter(|it| it.file.is_none())
                .count();
            if copies > COPIES
                && let Some(entry) = self.roll.pick(&mut rng, |it| it.file.is_none())
            {
                self.roll.strike(entry.id);
                self.field.desire(entry.id, Goal::Removed)?;
                self.roll.count(|it| it.removals += 1);
            }
        }
        Ok(())
    }

    /// Exports an agent, and imports it here under another name, or elsewhere; why that was not done, if it was not.
    pub(super) async fn carry(
        &self,
        number: u64,
        is_here: bool,
        rng: &mut Rng,
    ) -> Result<Option<Told>, String> {
        let Some(entry) = self.roll.pick(rng, |_| true) else {
            return Ok(None);
        };
        let (name, field) = (&*entry.name, &self.field);
        let stopped = field.command(&["agent", "stop", name]).await?;
        let Some(from) = self.roll.get(entry.id) else {
            return Ok(Some(stopped));
        };
        let bundle = field.directory.join(format!("{number}.bundle"));
        let file = bundle.to_string_lossy().into_owned();
        let exported = field.command(&["agent", "export", name, &file]).await?;
        field.desire(entry.id, Goal::Running)?;
        if !self.counted(&exported, |it| it.exports += 1) {
            return Ok(Some(exported));
        }
        let elsewhere = Home::at(field.directory.join("elsewhere"));
        let copy = format!("copy-{number}");
        let home = if is_here { &field.home } else { &elsewhere };
        let imported = field
            .command_in(
                home,
                &["agent", "import", &file, "--name", &copy, "--trust"],
            )
            .await?;
        fs::remove_file(bundle).map_err(|error| error.to_string())?;
        if !self.counted(&imported, |it| it.imports += 1) {
            return Err(format!(
                "what was exported of {name} was not imported: {}",
                imported.text
            ));
        }
        let started = field.command_in(home, &["agent", "start", &copy]).await?;
        if !started.is_done {
            return Err(format!(
                "{copy}, imported of {name}, was not started: {}",
                started.text
            ));
        }
        let entries = home.entries().map_err(|error| error.to_string())?.all;
        let entry = entries
            .into_iter()
            .find(|it| *it.name == *copy)
            .ok_or_else(|| format!("{copy} is not there"))?;
        let number = |text: &str| text.strip_prefix('r')?.parse().ok();
        let now: u32 = revision(&entry)
            .and_then(number)
            .ok_or_else(|| format!("{copy} has no revision"))?;
        let newest = self
            .roll
            .get(from.entry.id)
            .map_or(from.revisions.1, |it| it.revisions.1);
        if !(from.revisions.0..=newest).contains(&now) {
            return Err(format!(
                "{copy} has revision {now} of {name}: {} was acknowledged",
                from.revisions.0
            ));
        }
        let copied = Listed {
            entry: entry.clone(),
            ..from
        };
        self.remembers(&copied).await?;
        if is_here {
            self.roll.list(entry, None, now, Some(copied));
            return Ok(None);
        }
        let removed = field.command_in(home, &["agent", "rm", &copy]).await?;
        let is_gone = removed.is_done
            && home
                .entries()
                .is_ok_and(|it| it.all.is_empty() && it.problems.is_empty());
        if is_gone {
            Ok(None)
        } else {
            Err(format!("{copy} was not removed: {}", removed.text))
        }
    }

    /// An agent that was imported knows all that was acknowledged before; its runs may be at work again.
    async fn remembers(&self, copied: &Listed) -> Result<(), String> {
        let until = Instant::now() + REMEMBERS_WITHIN;
        loop {
            match copied.check(&self.field.marks(), false).await {
                Err(why) if Instant::now() > until => {
                    return Err(format!("it does not remember: {why}"));
                }
                Err(_) => sleep(Duration::from_millis(50)).await,
                Ok(()) => return Ok(()),
            }
        }
    }

    fn counted(&self, told: &Told, count: impl FnOnce(&mut Survived)) -> bool {
        self.roll.count(|it| {
            if told.is_done {
                count(it)
            } else {
                it.refused += 1
            }
        });
        told.is_done
    }
}
