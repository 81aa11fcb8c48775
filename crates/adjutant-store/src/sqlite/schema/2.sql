-- What a log waits for: 0 nothing, 1 its open run goes on, 2 answers; and until when.
ALTER TABLE logs ADD COLUMN work INTEGER NOT NULL DEFAULT 0;
ALTER TABLE logs ADD COLUMN waits TEXT;
ALTER TABLE logs ADD COLUMN until_ms INTEGER;
-- The newest post that is in the log.
ALTER TABLE logs ADD COLUMN heeded INTEGER NOT NULL DEFAULT 0;
UPDATE logs SET heeded = newest_post - (SELECT count(*) FROM posts WHERE log = key);
-- The owners in a row that died while its run was open, and why nobody drives it any more.
ALTER TABLE logs ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE logs ADD COLUMN aside TEXT;
-- The time when the log was given, or until which one that lost owners rests; 0 if that is still to be chosen.
ALTER TABLE logs ADD COLUMN rest_ms INTEGER NOT NULL DEFAULT 0;
-- The newest post that does not make the log due.
ALTER TABLE logs ADD COLUMN passed INTEGER NOT NULL DEFAULT 0;
-- Idle logs are not in the index: they cost those who ask for work nothing.
ALTER TABLE logs ADD COLUMN due_ms INTEGER GENERATED ALWAYS AS (
    CASE WHEN aside IS NOT NULL THEN NULL WHEN work = 1 OR newest_post > max(heeded, passed) THEN 0 ELSE until_ms END
) VIRTUAL;
CREATE INDEX logs_by_due ON logs(due_ms, updated_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX logs_parked ON logs(key) WHERE work = 2;
CREATE INDEX logs_aside ON logs(key) WHERE aside IS NOT NULL;
-- Few have lost owners, and those that have are asked for by owner.
CREATE INDEX logs_lost ON logs(owner) WHERE lost > 0;
