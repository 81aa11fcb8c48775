//! The size limits for skill files: content beyond them is reported and not read.

/// The largest number of bytes that a `SKILL.md` may have.
pub const MAX_FILE_BYTES: u64 = 256 << 10;
/// The largest number of bytes of YAML that may stand before the body.
pub const MAX_FRONT_BYTES: usize = 32 << 10;
/// The largest number of bytes that the body of a skill may have.
pub const MAX_BODY_BYTES: usize = 96 << 10;
/// The largest number of bytes that the bodies of all skills may have together.
pub const MAX_TOTAL_BYTES: usize = 16 << 20;
/// The largest number of bytes that the skills that are always at hand may have together.
pub const MAX_INLINE_BYTES: usize = 192 << 10;
/// The largest number of bytes that the list of skills that can be loaded may have.
pub const MAX_LISTING_BYTES: usize = 48 << 10;
/// The largest number of skills that there may be.
pub const MAX_SKILLS: usize = 500;
/// The greatest depth below a root that a skill may be at.
pub const MAX_DEPTH: usize = 4;
/// The largest number of folders that are searched in one root.
pub const MAX_FOLDERS: usize = 2_000;
/// The largest number of entries that are read in all folders of one root.
pub const MAX_ENTRIES: usize = 50_000;
/// The largest number of findings that are kept of one load.
pub const MAX_FINDINGS: usize = 1_000;
/// The largest number of characters that a name may have. Source: Agent Skills specification, August 2026.
pub const MAX_NAME_CHARS: usize = 64;
/// The largest number of characters that a description may have. Source: Agent Skills specification, August 2026.
pub const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// The largest number of characters that the needs of a skill may have. Source: Agent Skills specification, August
/// 2026.
pub const MAX_COMPATIBILITY_CHARS: usize = 500;
/// The largest number of characters that the name of a licence may have.
pub const MAX_LICENSE_CHARS: usize = 1_024;
/// The largest number of entries that the metadata may have.
pub const MAX_METADATA: usize = 64;
/// The largest number of characters that a key or a value of the metadata may have.
pub const MAX_METADATA_CHARS: usize = 1_024;
/// The largest number of tools that may be named.
pub const MAX_ALLOWED_TOOLS: usize = 128;
/// The largest number of lines that a body is advised to have. Source: Agent Skills specification, August 2026.
pub const ADVISED_LINES: usize = 500;
/// The largest number of listed files next to a `SKILL.md`.
pub const MAX_LISTED_FILES: usize = 50;
/// The greatest depth of listed files next to a `SKILL.md`.
pub const MAX_LISTED_DEPTH: usize = 5;
/// The largest number of bytes of a file that one call shows.
pub const MAX_SHOWN_BYTES: usize = 64 << 10;
/// The largest number of bytes of a file that can be read at all.
pub const MAX_READ_BYTES: u64 = 4 << 20;
