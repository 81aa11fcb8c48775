-- What a log waits for: 0 nothing, 1 its open run goes on, 2 answers; and until when.
alter table logs add work smallint not null default 0;
alter table logs add waits bytea;
alter table logs add until_ms bigint;
-- The owners in a row that died while its run was open, and why nobody drives it any more.
alter table logs add lost smallint not null default 0;
alter table logs add aside bytea;
-- The time when the log was given, or until which one that lost owners rests.
alter table logs add rest_ms bigint not null default 0;
-- The newest post that does not make the log due.
alter table logs add passed bigint not null default 0;
-- Idle logs are not in the index: they cost those who ask for work nothing.
alter table logs add due_ms bigint generated always as (
    case when aside is not null then null when work = 1 or posted > greatest(heeded, passed) then 0 else until_ms end
) stored;
create index logs_due on logs (due_ms, updated_ms) where due_ms is not null;
create index logs_parked on logs (id) where work = 2;
create index logs_aside on logs (id) where aside is not null;
-- Few have lost owners.
create index logs_lost on logs (due_ms, updated_ms) where lost > 0;
