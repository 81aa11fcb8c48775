//! Where sessions, boards, notes and memories are kept: JSON lines, SQLite, PostgreSQL.
