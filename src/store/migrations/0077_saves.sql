-- How long a job may save before it is stopped for others (0: it is not asked first); and of each of its
-- tasks when it was asked, and when it said that it has saved.
ALTER TABLE jobs ADD COLUMN save_within_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN asked_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN saved_ms BIGINT NOT NULL DEFAULT 0;
