-- Sandboxes: IONs that are tried. Those of before are in production. And trainings that a person wants
-- several times over.

ALTER TABLE ions ADD COLUMN mode TEXT NOT NULL DEFAULT 'production' CHECK (mode IN ('production', 'sandbox'));
ALTER TABLE ion_pipelines ADD COLUMN runs_left BIGINT NOT NULL DEFAULT 0;
ALTER TABLE decisions ADD COLUMN is_sandbox INTEGER NOT NULL DEFAULT 0;
