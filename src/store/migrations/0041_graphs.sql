-- Pipelines start again by a rule; those that measure models know which came last.

ALTER TABLE ion_pipelines ADD COLUMN n_failures BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_pipelines ADD COLUMN restart_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_pipelines ADD COLUMN measured_model TEXT;
ALTER TABLE ion_pipelines ADD COLUMN measured_version BIGINT NOT NULL DEFAULT 0;
