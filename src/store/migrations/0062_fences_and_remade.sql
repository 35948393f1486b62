-- Jobs whose tasks stop themselves when their node does not reach the server, and tasks that an older version defined.

ALTER TABLE jobs ADD COLUMN fence_ms BIGINT NOT NULL DEFAULT 0; -- the node time-out that they go by; 0: they do not

-- The attempt that was begun by a definition of an older version; 0: none was.
ALTER TABLE tasks ADD COLUMN old_attempt BIGINT NOT NULL DEFAULT 0;
CREATE INDEX tasks_begun_before ON tasks (node) WHERE old_attempt > 0;
