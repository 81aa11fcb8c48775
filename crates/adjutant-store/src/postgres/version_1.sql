-- Names, keys, texts and JSON are bytea: PostgreSQL's text cannot hold a NUL, and bytes have one order everywhere.

create table logs (
    id bigint generated always as identity primary key,
    name bytea not null unique,
    epoch bigint not null default 1,
    -- Nobody owns the log if this is null, or `until` is over by the server's clock.
    owner bytea,
    until timestamptz,
    lease interval,
    seq bigint not null default 0,
    link bytea not null,
    bytes bigint not null default 0,
    created_ms bigint not null,
    updated_ms bigint not null,
    about bytea not null,
    agent bytea,
    labels bytea[] not null default '{}',
    parent bytea,
    parent_seq bigint,
    -- The newest post, and the newest one that is in the log: those in between wait.
    posted bigint not null default 0,
    heeded bigint not null default 0
);
create index logs_updated on logs (updated_ms desc, name);
create index logs_parent on logs (parent) where parent is not null;

create table records (
    log bigint not null,
    seq bigint not null,
    link bytea not null,
    bytes bytea not null,
    -- How many attachments it has.
    attached int not null,
    primary key (log, seq)
);

create table attachments (
    digest bytea primary key,
    bytes bytea not null
);

create table attached (
    log bigint not null,
    seq bigint not null,
    place int not null,
    digest bytea not null,
    primary key (log, seq, place)
);
create index attached_digest on attached (digest);

create table folds (
    log bigint primary key,
    seq bigint not null,
    -- Of that record: a fold of other records is not believed.
    link bytea not null,
    format bytea not null,
    bytes bytea not null
);

create table posts (
    log bigint not null,
    no bigint not null,
    post bytea not null,
    primary key (log, no)
);

create table shelves (
    id bigint generated always as identity primary key,
    name bytea not null unique,
    newest bigint not null
);

create table items (
    shelf bigint not null,
    key bytea not null,
    version bigint not null,
    value bytea not null,
    text bytea not null,
    words tsvector not null,
    changed_ms bigint not null,
    primary key (shelf, key)
);
create index items_version on items (shelf, version);
create index items_words on items using gin (words);

create table removals (
    shelf bigint not null,
    key bytea not null,
    version bigint not null,
    primary key (shelf, key)
);
create index removals_version on removals (shelf, version);

create table owners (
    owner bytea primary key,
    facts bigint not null
);

create table facts (
    owner bytea not null,
    id bytea not null,
    text bytea not null,
    words tsvector not null,
    metadata bytea not null,
    model bytea,
    vector bytea,
    created_ms bigint not null,
    updated_ms bigint not null,
    primary key (owner, id)
);
create index facts_age on facts (owner, created_ms, id);
create index facts_words on facts using gin (words);

create table marks (
    owner bytea not null,
    source bytea not null,
    at bigint not null,
    primary key (owner, source)
);
