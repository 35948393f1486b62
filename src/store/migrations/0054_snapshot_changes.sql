-- When forgetting a person has changed the rows of a snapshot.
ALTER TABLE snapshots ADD COLUMN changed_ms BIGINT NOT NULL DEFAULT 0;
