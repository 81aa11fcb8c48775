//! Names of logs as names of folders: any text, and no two logs in one folder.

use adjutant_core::{Digest, LogId};

/// The longest name that is kept whole.
const MAX_WHOLE: usize = 120;
/// The length of the beginning of a longer name that stays, for people.
const KEPT: usize = 60;

/// The name of the folder of a log.
///
/// Small letters, digits, `-` and `_` stay; other bytes become `%` and two digits, including capital letters, since
/// some file systems ignore case. A long name is truncated, and a digest makes it unique: `~` and 64 digits.
pub(super) fn folder(log: &LogId) -> String {
    let mut name = String::with_capacity(log.0.len());
    for byte in log.0.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.len() > MAX_WHOLE {
        name.truncate(KEPT);
        name.push_str(&format!("~{}", Digest::compute(log.0.as_bytes())));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::folder;

    #[test]
    fn folder_is_no_path_and_of_one_log() {
        let long = "é".repeat(256);
        for (id, expect) in [
            ("chat-1_a", "chat-1_a".to_owned()),
            ("../A b", "%2e%2e%2f%41%20b".to_owned()),
            (".", "%2e".to_owned()),
            ("a\0~%", "a%00%7e%25".to_owned()),
            (
                &long,
                format!(
                    "{}~{}",
                    "%c3%a9".repeat(10),
                    adjutant_core::Digest::compute(long.as_bytes())
                ),
            ),
        ] {
            assert_eq!(folder(&id.into()), expect);
        }
    }
}
