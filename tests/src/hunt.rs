//! A hunt for secrets: marked values that must be nowhere, looked for as they are and in the forms that hide them.

use std::{fs, path::Path};

/// The digits of base64, in the form of MIME and in that of addresses.
const DIGITS: [&[u8; 64]; 2] = [
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
];

/// How a byte is written.
type Escape = fn(u8) -> String;

/// A secret that can be told from everything else.
#[derive(Debug)]
pub struct Mark {
    name: &'static str,
    forms: Vec<(&'static str, Vec<u8>)>,
}

/// What was looked at, and where marks were found.
#[derive(Debug, Default)]
pub struct Hunt {
    marks: Vec<Mark>,
    /// Where a mark was found, in which form.
    pub found: Vec<String>,
    /// How many texts and files were looked at.
    pub looked: usize,
}

impl Mark {
    /// A secret, and what it is called in what is found. The longer, the fewer false finds: 12 letters at least.
    pub fn new(name: &'static str, secret: &str) -> Self {
        let bytes = secret.as_bytes();
        let mut forms = vec![
            ("as it is", bytes.to_vec()),
            ("backwards", bytes.iter().rev().copied().collect()),
        ];
        forms.push(("in hexadecimal digits", hex(bytes).into_bytes()));
        forms.push((
            "in great hexadecimal digits",
            hex(bytes).to_uppercase().into_bytes(),
        ));
        let escapes: [(&'static str, Escape); 4] = [
            ("in percent escapes", |byte| format!("%{byte:02x}")),
            ("in great percent escapes", |byte| format!("%{byte:02X}")),
            ("in JSON escapes", |byte| format!("\\u{byte:04x}")),
            ("in great JSON escapes", |byte| format!("\\u{byte:04X}")),
        ];
        for (form, escape) in escapes {
            let some = |byte: u8| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    escape(byte)
                }
            };
            forms.push((
                form,
                bytes
                    .iter()
                    .copied()
                    .map(escape)
                    .collect::<String>()
                    .into_bytes(),
            ));
            forms.push((
                form,
                bytes
                    .iter()
                    .copied()
                    .map(some)
                    .collect::<String>()
                    .into_bytes(),
            ));
        }
        for digits in DIGITS {
            // What stands before it decides how its bits fall into digits.
            forms.extend((0..3).map(|shift| ("in base64", base64(bytes, shift, digits))));
        }
        Self { name, forms }
    }

    /// The forms, by what they are called.
    pub fn forms(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.forms
            .iter()
            .map(|(form, bytes)| (*form, bytes.as_slice()))
    }
}

impl Hunt {
    /// A hunt for these.
    pub fn new(marks: impl IntoIterator<Item = Mark>) -> Self {
        Self {
            marks: marks.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Looks at bytes; `place` tells where they are from.
    pub fn look(&mut self, place: &str, bytes: impl AsRef<[u8]>) {
        self.looked += 1;
        for mark in &self.marks {
            for (form, bytes) in mark.forms().filter(|(_, form)| holds(bytes.as_ref(), form)) {
                self.found.push(format!(
                    "{place}: {} {form} ({} bytes)",
                    mark.name,
                    bytes.len()
                ));
            }
        }
    }

    /// Looks at every file below a folder, and at their names; links are not followed.
    ///
    /// # Errors
    /// If one cannot be read, in words.
    pub fn files(&mut self, folder: &Path, except: &dyn Fn(&Path) -> bool) -> Result<(), String> {
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(told)? {
            let path = entry.map_err(told)?.path();
            let shown = path.display().to_string();
            self.look(&format!("the name {shown}"), shown.as_bytes());
            let meta = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                meta => meta.map_err(told)?,
            };
            if meta.is_dir() {
                self.files(&path, except)?;
            } else if meta.is_file() && !except(&path) {
                match fs::read(&path) {
                    // Logs are put aside, and databases put theirs away.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    bytes => self.look(&shown, bytes.map_err(told)?),
                }
            }
        }
        Ok(())
    }

    /// Looks at the command line of every process of this machine; gives how many there were.
    pub fn commands(&mut self) -> usize {
        let Ok(all) = fs::read_dir("/proc") else {
            return 0;
        };
        let mut count = 0;
        for pid in all
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        {
            // It may have ended.
            let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else {
                continue;
            };
            count += 1;
            self.look(&format!("the command line of {pid}"), command);
        }
        count
    }
}

/// Whether these bytes stand anywhere in those.
pub fn holds(bytes: &[u8], what: &[u8]) -> bool {
    let Some(first) = what.first() else {
        return false;
    };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        let Some(from) = rest.get(at..) else {
            return false;
        };
        if from.starts_with(what) {
            return true;
        }
        rest = from.get(1..).unwrap_or_default();
    }
    false
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digits of base64 that stand for these bytes alone, with `shift` bytes of something else before them.
fn base64(bytes: &[u8], shift: usize, digits: &[u8; 64]) -> Vec<u8> {
    let whole: Vec<u8> = std::iter::repeat_n(0, shift)
        .chain(bytes.iter().copied())
        .collect();
    let bit = |at: usize| {
        usize::from(
            whole
                .get(at / 8)
                .is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1),
        )
    };
    // A digit has 6 bits; the first and the last one may have bits of what is beside.
    let (first, last) = ((shift * 8).div_ceil(6), whole.len() * 8 / 6);
    (first..last)
        .map(|at| digits[(0..6).fold(0, |value, part| value << 1 | bit(at * 6 + part))])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let mut hunt = Hunt::new([Mark::new("it", "K3y-of-the-hunt")]);
        hunt.look("here", text);
        let told: Vec<String> = expect
            .iter()
            .map(|form| format!("here: it {form}"))
            .collect();
        assert_eq!(hunt.found, told, "{text}");
    }

    #[test]
    fn mark_is_found_in_each_form() {
        check("a K3y-of-the-hunt b", &["as it is (15 bytes)"]);
        check("tnuh-eht-fo-y3K", &["backwards (15 bytes)"]);
        check(
            "4b33792d6f662d7468652d68756e74",
            &["in hexadecimal digits (30 bytes)"],
        );
        check(
            "4B33792D6F662D7468652D68756E74",
            &["in great hexadecimal digits (30 bytes)"],
        );
        check("K3y%2dof%2dthe%2dhunt", &["in percent escapes (21 bytes)"]);
        check(
            "K3y%2Dof%2Dthe%2Dhunt",
            &["in great percent escapes (21 bytes)"],
        );
        check(
            r"K3y\u002dof\u002dthe\u002dhunt",
            &["in JSON escapes (30 bytes)"],
        );
        // The same digits in both alphabets: `K3y-of-the-hunt`, `:K3y-of-the-hunt`, `x:K3y-of-the-hunt!`.
        for text in [
            "SzN5LW9mLXRoZS1odW50",
            "OkszeS1vZi10aGUtaHVudA==",
            "eDpLM3ktb2YtdGhlLWh1bnQh",
        ] {
            let mut hunt = Hunt::new([Mark::new("it", "K3y-of-the-hunt")]);
            hunt.look("here", text);
            assert_eq!(hunt.found.len(), 2, "{text}: {:?}", hunt.found);
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        check("", &[]);
        check("K3y-of-the-hun K3y-of-the-hun t", &[]);
        check("SzN5LW9mLXRoZS1odW5", &[]);
    }
}
