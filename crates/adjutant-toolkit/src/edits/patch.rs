//! Patches in the format that OpenAI models are trained on: they add, update, move and delete files.
//!
//! Source: OpenAI, "GPT-4.1 Prompting Guide" (2025), appendix "Generating and applying file diffs".

/// A patch.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Patch {
    pub(super) files: Vec<(String, FilePatch)>,
}

/// The change of one file.
#[derive(Debug, PartialEq)]
pub(super) enum FilePatch {
    Add(String),
    Delete,
    Update {
        to: Option<String>,
        chunks: Vec<Chunk>,
    },
}

/// Consecutive lines, and their replacement.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chunk {
    /// The lines above it that locate it, from the outermost to the innermost.
    anchors: Vec<String>,
    old: Vec<String>,
    new: Vec<String>,
    /// True if it must be at the end of the file.
    at_end: bool,
}

/// The ways to compare two lines, in the order in which they are tried.
const WAYS: [fn(&str) -> String; 4] = [
    str::to_owned,
    |line| line.trim_end().to_owned(),
    |line| line.trim().to_owned(),
    plain,
];

impl Patch {
    /// Parses a patch.
    ///
    /// # Errors
    /// The error message with its line number.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut lines = (1..)
            .zip(text.trim_matches(['\n', '\r']).lines())
            .peekable();
        match lines.next() {
            Some((_, line)) if line.trim() == "*** Begin Patch" => {}
            _ => return Err("a patch begins with the line `*** Begin Patch`".to_owned()),
        }
        let mut patch = Self::default();
        loop {
            let Some((number, line)) = lines.next() else {
                return Err("a patch ends with the line `*** End Patch`".to_owned());
            };
            let wrong = |what: &str| format!("line {number} of the patch: {what}: {line:?}");
            if line.trim() == "*** End Patch" {
                break;
            } else if let Some(path) = line.strip_prefix("*** Add File: ") {
                let mut content = String::new();
                while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with('+')) {
                    content.push_str(&line[1..]);
                    content.push('\n');
                }
                patch.put(path, FilePatch::Add(content))?;
            } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
                patch.put(path, FilePatch::Delete)?;
            } else if let Some(path) = line.strip_prefix("*** Update File: ") {
                let to = lines.next_if(|(_, line)| line.starts_with("*** Move to: "));
                let to = to.map(|(_, line)| line["*** Move to: ".len()..].trim().to_owned());
                let mut chunks = Vec::new();
                while lines
                    .peek()
                    .is_some_and(|(_, line)| !line.starts_with("*** "))
                {
                    chunks.push(Chunk::read(&mut lines)?);
                }
                if chunks.is_empty() && to.is_none() {
                    return Err(wrong("nothing of the file is changed"));
                }
                patch.put(path, FilePatch::Update { to, chunks })?;
            } else {
                return Err(wrong(
                    "a line names a file with `*** Add File: `, `*** Update File: ` or `*** Delete File: `",
                ));
            }
        }
        if patch.files.is_empty() {
            return Err("the patch names no file".to_owned());
        }
        Ok(patch)
    }

    fn put(&mut self, path: &str, file: FilePatch) -> Result<(), String> {
        let path = path.trim();
        if self.files.iter().any(|(known, _)| known == path) {
            return Err(format!(
                "the patch names {path:?} twice; put its changes together"
            ));
        }
        self.files.push((path.to_owned(), file));
        Ok(())
    }
}

impl Chunk {
    fn read<'a>(
        lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'a str)>>,
    ) -> Result<Self, String> {
        let mut chunk = Self::default();
        while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("@@")) {
            let anchor = line[2..].trim();
            if !anchor.is_empty() {
                chunk
                    .anchors
                    .push(anchor.trim_end_matches("@@").trim().to_owned());
            }
        }
        let (mut any, mut changes) = (false, false);
        let number = lines.peek().map_or(0, |(number, _)| *number);
        while let Some((number, line)) =
            lines.next_if(|(_, line)| !line.starts_with("@@") && !line.starts_with("*** "))
        {
            any = true;
            let (mark, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
            match mark {
                // An empty context line whose leading blank was lost.
                " " | "" => {
                    chunk.old.push(rest.to_owned());
                    chunk.new.push(rest.to_owned());
                }
                "-" => chunk.old.push(rest.to_owned()),
                "+" => chunk.new.push(rest.to_owned()),
                _ => {
                    return Err(format!(
                        "line {number} of the patch begins with none of ` `, `+`, `-`, `@@`: {line:?}"
                    ));
                }
            }
            changes |= matches!(mark, "-" | "+");
        }
        if lines
            .next_if(|(_, line)| line.trim() == "*** End of File")
            .is_some()
        {
            chunk.at_end = true;
        }
        if !any || !changes {
            return Err(format!(
                "line {number} of the patch: a part that changes nothing"
            ));
        }
        Ok(chunk)
    }
}

/// Returns the content with all chunks applied, in order.
///
/// # Errors
/// The message for the model about the first chunk that does not match.
pub(super) fn apply(content: &str, chunks: &[Chunk]) -> Result<String, String> {
    let ends = content.is_empty() || content.ends_with('\n');
    let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
    let mut from = 0;
    for chunk in chunks {
        for anchor in &chunk.anchors {
            let found = find(&lines, from, std::slice::from_ref(anchor), false);
            from = found.ok_or_else(|| absent(&lines, from, std::slice::from_ref(anchor)))? + 1;
        }
        let at = match (chunk.old.is_empty(), chunk.anchors.is_empty()) {
            (true, true) => lines.len(),
            (true, false) => from,
            _ => find(&lines, from, &chunk.old, chunk.at_end)
                .ok_or_else(|| absent(&lines, from, &chunk.old))?,
        };
        lines.splice(at..at + chunk.old.len(), chunk.new.iter().cloned());
        from = at + chunk.new.len();
    }
    let mut content = lines.join("\n");
    if ends && !lines.is_empty() {
        content.push('\n');
    }
    Ok(content)
}

fn find(lines: &[String], from: usize, wanted: &[String], at_end: bool) -> Option<usize> {
    for way in WAYS {
        let wanted: Vec<String> = wanted.iter().map(|line| way(line)).collect();
        let fits = |at: &usize| {
            lines
                .get(*at..*at + wanted.len())
                .is_some_and(|found| found.iter().zip(&wanted).all(|(a, b)| way(a) == *b))
        };
        let last = lines.len().checked_sub(wanted.len())?;
        if at_end && last >= from && fits(&last) {
            return Some(last);
        }
        if let Some(found) = (from..=last).find(fits).filter(|_| !at_end) {
            return Some(found);
        }
    }
    None
}

fn absent(lines: &[String], from: usize, wanted: &[String]) -> String {
    let shown = wanted
        .iter()
        .take(6)
        .map(|line| format!("\n  {line}"))
        .collect::<String>();
    let earlier = find(lines, 0, wanted, false).filter(|at| *at < from);
    match earlier {
        Some(at) => format!(
            "these lines stand in line {}, before or within a part that the patch changed already; put the parts in \
             order, and let none overlap:{shown}",
            at + 1
        ),
        None => {
            format!("these lines are not in the file behind line {from}; read it again:{shown}")
        }
    }
}

/// Replaces typographic quotes and dashes by ASCII characters.
fn plain(line: &str) -> String {
    line.trim().chars().map(keyboard).collect()
}

/// A quote, a dash or a blank as on a plain keyboard.
pub(super) fn keyboard(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}
