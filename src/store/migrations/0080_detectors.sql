-- The detector that a prediction pipeline's stages find with, and what a decision says of what was found.

ALTER TABLE ion_pipelines ADD COLUMN detector_model TEXT;
ALTER TABLE ion_pipelines ADD COLUMN detector_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_pipelines ADD COLUMN detector_id TEXT;
ALTER TABLE ion_pipelines ADD COLUMN detector_blob TEXT;
ALTER TABLE decisions ADD COLUMN box TEXT;
ALTER TABLE decisions ADD COLUMN quality TEXT;
ALTER TABLE decisions ADD COLUMN passage TEXT;
