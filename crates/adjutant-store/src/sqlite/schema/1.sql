-- Logs: who owns them, where they end, what is said of them.
CREATE TABLE logs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    head INTEGER NOT NULL DEFAULT 0,
    link BLOB NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    flushes INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    instance TEXT,
    newest_post INTEGER NOT NULL DEFAULT 0,
    title TEXT,
    agent TEXT,
    parent TEXT,
    parent_seq INTEGER
);
CREATE INDEX logs_by_change ON logs(updated_ms DESC, id);
CREATE INDEX logs_by_agent ON logs(agent, updated_ms DESC, id) WHERE agent IS NOT NULL;
CREATE INDEX logs_by_parent ON logs(parent) WHERE parent IS NOT NULL;
CREATE INDEX logs_by_instance ON logs(instance) WHERE instance IS NOT NULL;

CREATE TABLE labels (
    label TEXT NOT NULL,
    log INTEGER NOT NULL,
    PRIMARY KEY (label, log)
) WITHOUT ROWID;
CREATE INDEX labels_by_log ON labels(log);

-- Records: `place` is the key of the log and the number of the record in one, so that a log lies together.
CREATE TABLE records (
    place INTEGER PRIMARY KEY,
    link BLOB NOT NULL,
    bytes BLOB NOT NULL,
    attachments INTEGER NOT NULL
);
CREATE TABLE attached (
    place INTEGER NOT NULL,
    no INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (place, no)
) WITHOUT ROWID;
CREATE INDEX attached_by_digest ON attached(digest);
CREATE TABLE attachments (
    key INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    bytes BLOB NOT NULL
);

-- The fold of a log's first records: derived, believed only if link and digest fit.
CREATE TABLE folded (
    log INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    link BLOB NOT NULL,
    format TEXT NOT NULL,
    digest BLOB NOT NULL,
    bytes BLOB NOT NULL
);

-- Posts: `key` only grows, so that a watcher sees new ones.
CREATE TABLE posts (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    log INTEGER NOT NULL,
    no INTEGER NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (log, no)
);

-- Shelves: an item without JSON is the trace of a removal.
CREATE TABLE shelves (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    newest INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE items (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    shelf INTEGER NOT NULL,
    key BLOB NOT NULL,
    json TEXT,
    text TEXT NOT NULL,
    version INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    UNIQUE (shelf, key)
);
CREATE INDEX items_by_version ON items(shelf, version, key);
CREATE INDEX items_removed ON items(shelf, version) WHERE json IS NULL;
CREATE VIRTUAL TABLE item_words USING fts5(
    owner, text, content='', contentless_delete=1, tokenize='unicode61'
);

-- Memory.
CREATE TABLE owners (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    facts INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE facts (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    UNIQUE (owner, id)
);
CREATE INDEX facts_by_age ON facts(owner, created_ms, id);
CREATE TABLE vectors (
    fact INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    model TEXT NOT NULL,
    numbers BLOB NOT NULL
);
CREATE INDEX vectors_by_owner ON vectors(owner, model);
CREATE VIRTUAL TABLE fact_words USING fts5(
    owner, text, content='', contentless_delete=1, tokenize='unicode61'
);
CREATE TABLE marks (
    owner INTEGER NOT NULL,
    source TEXT NOT NULL,
    upto INTEGER NOT NULL,
    PRIMARY KEY (owner, source)
) WITHOUT ROWID;
