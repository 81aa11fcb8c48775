//! The pieces that a view is made of, and how long ones are cut: texts keep beginning and end, calls keep their results.

use std::sync::Arc;

use adjutant_llm::{
    Block, Call, CallResult, Content, Edit, Entry, Estimate, Reply, Summary, Transcript, Turn,
    UserMessage,
};
use serde_json::json;

/// The smallest size that a piece is cut to, in tokens.
const LEAST: u64 = 24;
/// The text that replaces a part cut out of another text.
const GAP: &str = "\n[… left out here: it does not fit the model's window …]\n";

/// The edits that make a view about this large: the longest pieces of all entries are cut to one length.
pub(super) fn cut(items: &Transcript, budget: u64) -> Vec<Edit> {
    if items.tokens() <= budget {
        return Vec::new();
    }
    let mut sizes: Vec<u64> = items
        .iter()
        .flat_map(|stored| sizes(&stored.entry))
        .collect();
    let fixed = items.tokens().saturating_sub(sizes.iter().sum());
    let cap = cap(&mut sizes, budget.saturating_sub(fixed)).max(LEAST);
    let shorter = |entry: &Entry| shorter(entry, cap);
    items
        .iter()
        .filter_map(|it| {
            Some(Edit::Replace {
                at: it.id,
                with: shorter(&it.entry)?,
            })
        })
        .collect()
}

/// The length to which pieces are cut so that all of them have this size together.
fn cap(sizes: &mut [u64], budget: u64) -> u64 {
    sizes.sort_unstable();
    let (mut left, mut others) = (budget, sizes.len() as u64);
    for size in sizes {
        if size.saturating_mul(others) > left {
            return left / others;
        }
        left -= *size;
        others -= 1;
    }
    u64::MAX
}

fn sizes(entry: &Entry) -> Vec<u64> {
    match entry {
        Entry::User(message) => message.content.iter().map(Estimate::content).collect(),
        Entry::Summary(summary) => vec![Estimate.count(&summary.text)],
        Entry::Turn(turn) => {
            let said = turn
                .reply()
                .blocks
                .iter()
                .map(|block| estimate_block(block));
            let results = turn.results().iter().flat_map(|result| &result.content);
            said.chain(results.map(Estimate::content)).collect()
        }
        Entry::Custom(_) => Vec::new(),
        _ => Vec::new(),
    }
}

fn estimate_block(block: &Block) -> u64 {
    match block {
        Block::Text(said) => Estimate.count(&said.text),
        Block::Thinking(thinking) => Estimate.count(&thinking.text),
        Block::Call(call) => Estimate.count(&call.args),
        Block::Opaque { value, .. } => Estimate.count(&value.to_string()),
        _ => 0,
    }
}

/// The entry with no piece above the cap; `None` if it has none.
fn shorter(entry: &Entry, cap: u64) -> Option<Entry> {
    if sizes(entry).iter().all(|size| *size <= cap) {
        return None;
    }
    Some(match entry {
        Entry::User(message) => Entry::User(UserMessage {
            content: contents(&message.content, cap),
            ..message.clone()
        }),
        Entry::Summary(summary) => Entry::Summary(Summary {
            text: text(&summary.text, cap).into(),
            ..summary.clone()
        }),
        Entry::Turn(turn) => Entry::Turn(turn_of(turn, cap)?),
        Entry::Custom(_) => return None,
        _ => return None,
    })
}

/// The turn with all of its calls and their results.
fn turn_of(turn: &Turn, cap: u64) -> Option<Turn> {
    let blocks = turn
        .reply()
        .blocks
        .iter()
        .filter_map(|block| match &**block {
            whole if estimate_block(whole) <= cap => Some(Arc::clone(block)),
            Block::Text(said) => Some(Arc::new(Block::text(text(&said.text, cap)))),
            Block::Call(call) => Some(Arc::new(Block::Call(Call {
                args: args(&call.args, cap),
                ..call.clone()
            }))),
            // They are read whole or not at all.
            _ => None,
        });
    let reply = Reply {
        blocks: blocks.collect(),
        ..Reply::clone(turn.reply())
    };
    let mut open = Turn::open(Arc::new(reply));
    for (call, result) in turn.pairs() {
        // The executed arguments would replace the call's own.
        let ran = result
            .args
            .as_deref()
            .filter(|ran| Estimate.count(ran) <= cap && Estimate.count(&call.args) <= cap);
        let content = contents(&result.content, cap);
        let shown = CallResult {
            content,
            args: ran.map(Arc::from),
            ..CallResult::clone(result)
        };
        open.put(call.id, Arc::new(shown)).ok()?;
    }
    open.close().ok()
}

fn contents(contents: &[Content], cap: u64) -> Vec<Content> {
    let one = |content: &Content| match content {
        content if Estimate::content(content) <= cap => content.clone(),
        Content::Text { text: long } => Content::text(text(long, cap)),
        Content::Image(_) => {
            Content::text("[a picture was left out: it does not fit the model's window]")
        }
        Content::Audio(_) => {
            Content::text("[a recording was left out: it does not fit the model's window]")
        }
        _ => Content::text("[a document was left out: it does not fit the model's window]"),
    };
    contents.iter().map(one).collect()
}

/// Returns arguments as an object that contains their start.
fn args(args: &str, cap: u64) -> Arc<str> {
    // A quotation may take twice its length.
    let shown = json!({ "left_out": text(args, cap / 2) }).to_string();
    if Estimate.count(&shown) <= cap {
        shown.into()
    } else {
        "{}".into()
    }
}

/// The beginning and the end of a text, within `cap` tokens.
fn text(text: &str, cap: u64) -> String {
    if Estimate.count(text) <= cap {
        return text.to_owned();
    }
    let room = cap.saturating_sub(Estimate.count(GAP));
    let mut chars = usize::try_from(room.saturating_mul(4)).unwrap_or(usize::MAX);
    loop {
        let head = text
            .char_indices()
            .nth(chars - chars / 4)
            .map_or(text, |(end, _)| &text[..end]);
        let tail = match chars / 4 {
            0 => "",
            tail => text
                .char_indices()
                .rev()
                .nth(tail - 1)
                .map_or(text, |(start, _)| &text[start..]),
        };
        let shown = format!("{head}{GAP}{tail}");
        let tokens = Estimate.count(&shown);
        if tokens <= cap || chars == 0 {
            return shown;
        }
        // In another script a character is more than a quarter of a token.
        let fewer =
            usize::try_from(u128::from(room) * chars as u128 / u128::from(tokens)).unwrap_or(0);
        chars = fewer.min(chars - 1);
    }
}
