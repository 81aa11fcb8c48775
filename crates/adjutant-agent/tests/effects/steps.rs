//! Where requests did not begin with the one before.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_llm::{Entry, EntryId, ScriptedModel};

/// The numbers of the requests, counted from 1, that do not begin with all of the one before.
pub(crate) fn breaks(model: &ScriptedModel) -> Vec<usize> {
    let requests = model.requests();
    let entries: Vec<Vec<Entry>> = requests
        .iter()
        .map(|request| {
            request
                .entries
                .iter()
                .map(|stored| stored.entry.clone())
                .collect()
        })
        .collect();
    let broken = |(_, pair): &(usize, &[Vec<Entry>])| !pair[1].starts_with(&pair[0]);
    (2..)
        .zip(entries.windows(2))
        .filter(broken)
        .map(|(number, _)| number)
        .collect()
}

/// In how many ways each turn was shown, at most.
pub(crate) fn most_forms(model: &ScriptedModel) -> usize {
    let mut forms: BTreeMap<EntryId, BTreeSet<String>> = BTreeMap::new();
    for request in model.requests() {
        for stored in request.entries.iter() {
            if let Entry::Turn(turn) = &stored.entry {
                let text = turn.results().iter().map(|result| result.text()).collect();
                forms.entry(stored.id).or_default().insert(text);
            }
        }
    }
    forms.values().map(BTreeSet::len).max().unwrap_or_default()
}
