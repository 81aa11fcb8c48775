//! The admission of media into the log: every record with content passes it, whatever its source.

use std::{sync::Arc, time::Duration};

use adjutant_core::{Record, Revised};
use adjutant_llm::{CallResult, Content, Edit, Entry, media};
use adjutant_tool::Answer;
use tokio::{runtime::Handle, time::timeout};

/// The maximum time for the media of one batch of records; media that are not checked by then are omitted.
const TIMEOUT: Duration = Duration::from_secs(30);

/// True if a record may hold media: [`admit`] looks closer.
pub(super) fn may_hold(record: &Record) -> bool {
    match record {
        Record::Returned { result, shown, .. } => {
            shown.is_some() || result.content.iter().any(media::is_held)
        }
        Record::Prepared { edits, once, .. } => !edits.is_empty() || !once.is_empty(),
        Record::Began {
            prompts: entries, ..
        }
        | Record::Seeded { entries }
        | Record::Appended { entries } => entries.iter().any(media::has_media),
        Record::Queued { content, .. } => media::has_media(content),
        Record::Placed { .. } | Record::Answered { .. } | Record::Resumed { .. } => true,
        _ => false,
    }
}

/// Replaces the media of the records by their admitted form. Images are decoded outside of the driver's thread.
///
/// Cancel: nothing is changed.
#[cold]
pub(super) async fn admit(records: &mut [Record]) {
    let mut held = Vec::new();
    for record in &mut *records {
        visit(record, &mut |content| held.push(content.clone()));
    }
    if held.is_empty() {
        return;
    }
    let unchecked: Vec<Content> = held
        .iter()
        .map(|_| Content::text("[omitted media: they could not be checked in time]"))
        .collect();
    let admitted = match Handle::try_current() {
        Ok(runtime) => {
            let admitting = runtime.spawn_blocking(move || {
                media::admit(&mut held);
                held
            });
            match timeout(TIMEOUT, admitting).await {
                Ok(Ok(admitted)) => admitted,
                Ok(Err(_)) | Err(_) => unchecked,
            }
        }
        Err(_) => {
            media::admit(&mut held);
            held
        }
    };
    let mut admitted = admitted.into_iter();
    for record in records {
        visit(record, &mut |content| {
            if let Some(instead) = admitted.next() {
                *content = instead;
            }
        });
    }
}

/// Visits the media of a record, in order.
fn visit(record: &mut Record, each: &mut dyn FnMut(&mut Content)) {
    match record {
        Record::Returned { result, shown, .. } => {
            visit_result(result, each);
            shown.iter_mut().for_each(|shown| visit_result(shown, each));
        }
        Record::Began {
            prompts: entries, ..
        }
        | Record::Seeded { entries }
        | Record::Appended { entries } => {
            entries
                .iter_mut()
                .for_each(|entry| visit_entry(entry, each));
        }
        Record::Queued { content: entry, .. } => visit_entry(entry, each),
        Record::Placed { revised, .. } => revised
            .iter_mut()
            .for_each(|Revised { content, .. }| visit_entry(content, each)),
        Record::Prepared { edits, once, .. } => {
            edits
                .iter_mut()
                .chain(once)
                .for_each(|edit| visit_edit(edit, each));
        }
        Record::Answered { answer, .. } => visit_answer(answer, each),
        Record::Resumed { answers, .. } => answers
            .iter_mut()
            .for_each(|answered| visit_answer(&mut answered.answer, each)),
        _ => {}
    }
}

fn visit_edit(edit: &mut Edit, each: &mut dyn FnMut(&mut Content)) {
    if let Edit::Append { entry } | Edit::Replace { with: entry, .. } = edit {
        visit_entry(entry, each);
    }
}

fn visit_answer(answer: &mut Answer, each: &mut dyn FnMut(&mut Content)) {
    if let Answer::Return { result } = answer {
        visit_result(result, each);
    }
}

fn visit_result(result: &mut Arc<CallResult>, each: &mut dyn FnMut(&mut Content)) {
    if result.content.iter().any(media::is_held) {
        visit_contents(&mut Arc::make_mut(result).content, each);
    }
}

fn visit_entry(entry: &mut Entry, each: &mut dyn FnMut(&mut Content)) {
    if !media::has_media(entry) {
        return;
    }
    if let Entry::User(message) = entry {
        return visit_contents(&mut message.content, each);
    }
    let replaced = media::map_media(entry, |_, content| {
        let mut content = content.clone();
        each(&mut content);
        Some(content)
    });
    if let Some(replaced) = replaced {
        *entry = replaced;
    }
}

fn visit_contents(contents: &mut [Content], each: &mut dyn FnMut(&mut Content)) {
    contents
        .iter_mut()
        .filter(|content| media::is_held(content))
        .for_each(each);
}
