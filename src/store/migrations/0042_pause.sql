-- People, and rules of alerts, pause pipelines.
ALTER TABLE ion_pipelines ADD COLUMN paused_by TEXT;
ALTER TABLE ion_pipelines ADD COLUMN paused_ms BIGINT NOT NULL DEFAULT 0;
