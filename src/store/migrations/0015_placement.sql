-- What the scheduler reads and says: a number that grows with every change of a job, when a job that
-- waits may start, and what a task takes of its node.

ALTER TABLE jobs ADD COLUMN expected_start_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_revision ON jobs (revision);
ALTER TABLE tasks ADD COLUMN memory_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN definition_bytes BIGINT NOT NULL DEFAULT 0;
UPDATE tasks SET definition_bytes = length(CAST(definition AS BLOB)) WHERE definition IS NOT NULL;
