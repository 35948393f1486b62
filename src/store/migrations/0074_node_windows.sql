-- Maintenance: a node takes nothing new from the first time to the second; 0 and 0: no window; a second of 0 with a
-- first: until somebody opens it.
ALTER TABLE nodes ADD COLUMN closed_from_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN closed_until_ms BIGINT NOT NULL DEFAULT 0;
