//! How large everything may be that is read of skills: what is beyond is told, and never read.

/// How many bytes a `SKILL.md` may have.
pub const MAX_FILE_BYTES: u64 = 256 << 10;
/// How many bytes of YAML may stand before the body.
pub const MAX_FRONT_BYTES: usize = 32 << 10;
/// How many bytes the body of a skill may have.
pub const MAX_BODY_BYTES: usize = 96 << 10;
/// How many bytes the bodies of all skills may have together.
pub const MAX_TOTAL_BYTES: usize = 16 << 20;
/// How many bytes the skills may have together that are always at hand.
pub const MAX_INLINE_BYTES: usize = 192 << 10;
/// How many bytes the list of the skills may have that can be loaded.
pub const MAX_LISTING_BYTES: usize = 48 << 10;
/// How many skills there may be.
pub const MAX_SKILLS: usize = 500;
/// How deep below a root a skill may be.
pub const MAX_DEPTH: usize = 4;
/// How many folders are looked at in one root.
pub const MAX_FOLDERS: usize = 2_000;
/// How many entries of all folders of one root are looked at.
pub const MAX_ENTRIES: usize = 50_000;
/// How many findings are kept of one load.
pub const MAX_FINDINGS: usize = 1_000;
/// How many characters a name may have. Source: Agent Skills specification, August 2026.
pub const MAX_NAME_CHARS: usize = 64;
/// How many characters a description may have. Source: Agent Skills specification, August 2026.
pub const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// How many characters the needs of a skill may have. Source: Agent Skills specification, August 2026.
pub const MAX_COMPATIBILITY_CHARS: usize = 500;
/// How many characters the name of a licence may have.
pub const MAX_LICENSE_CHARS: usize = 1_024;
/// How many entries the metadata may have.
pub const MAX_METADATA: usize = 64;
/// How many characters a key or a value of the metadata may have.
pub const MAX_METADATA_CHARS: usize = 1_024;
/// How many tools may be named.
pub const MAX_ALLOWED_TOOLS: usize = 128;
/// How many lines of a body are advised at most. Source: Agent Skills specification, August 2026.
pub const ADVISED_LINES: usize = 500;
/// How many files beside a `SKILL.md` are listed.
pub const MAX_LISTED_FILES: usize = 50;
/// How deep beside a `SKILL.md` files are listed.
pub const MAX_LISTED_DEPTH: usize = 5;
/// How many bytes of a file one call shows.
pub const MAX_SHOWN_BYTES: usize = 64 << 10;
/// How many bytes of a file can be read at all.
pub const MAX_READ_BYTES: u64 = 4 << 20;
