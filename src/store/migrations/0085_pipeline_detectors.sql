-- Which version a prediction pipeline's stages found with, and since when: a decision names no detector. Kept by triggers,
-- whoever changes a pipeline. id NULL: with none from then on. What was before this migration is not known.
CREATE TABLE pipeline_detectors (
    ion      TEXT   NOT NULL,
    pipeline TEXT   NOT NULL,
    since_ms BIGINT NOT NULL,
    id       TEXT, -- of the model version
    PRIMARY KEY (ion, pipeline, since_ms)
) WITHOUT ROWID;
CREATE INDEX pipeline_detectors_by_version ON pipeline_detectors (id, ion, pipeline, since_ms) WHERE id IS NOT NULL;
INSERT INTO pipeline_detectors
    SELECT ion, name, updated_ms, detector_id FROM ion_pipelines WHERE detector_id IS NOT NULL;

CREATE TRIGGER pipeline_detectors_come AFTER INSERT ON ion_pipelines
WHEN NEW.detector_id IS NOT NULL
BEGIN
    INSERT INTO pipeline_detectors VALUES (NEW.ion, NEW.name, NEW.updated_ms, NEW.detector_id)
    ON CONFLICT (ion, pipeline, since_ms) DO UPDATE SET id = excluded.id;
END;
CREATE TRIGGER pipeline_detectors_change AFTER UPDATE OF detector_id ON ion_pipelines
WHEN NEW.detector_id IS DISTINCT FROM OLD.detector_id
BEGIN
    INSERT INTO pipeline_detectors VALUES (NEW.ion, NEW.name, NEW.updated_ms, NEW.detector_id)
    ON CONFLICT (ion, pipeline, since_ms) DO UPDATE SET id = excluded.id;
END;
