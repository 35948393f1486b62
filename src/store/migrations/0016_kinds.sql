-- Which kinds there are the registries say, and no constraint beside them; what the later life of a job
-- needs to know of its kind stands in its row.

ALTER TABLE jobs ADD COLUMN is_service INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN has_known_exits INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET is_service = 1 WHERE kind = 'predict';
UPDATE jobs SET has_known_exits = 1 WHERE kind <> 'command';

ALTER TABLE jobs RENAME COLUMN kind TO old_kind;
ALTER TABLE jobs ADD COLUMN kind TEXT NOT NULL DEFAULT '';
UPDATE jobs SET kind = old_kind;
ALTER TABLE jobs DROP COLUMN old_kind;

ALTER TABLE ion_pipelines RENAME COLUMN type TO old_type;
ALTER TABLE ion_pipelines ADD COLUMN type TEXT NOT NULL DEFAULT '';
UPDATE ion_pipelines SET type = old_type;
ALTER TABLE ion_pipelines DROP COLUMN old_type;
