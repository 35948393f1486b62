-- A classifier's decision: the verdict "label", and which. SQLite cannot change a CHECK: the table is made anew.

CREATE TABLE decisions_with_labels (
    id              TEXT   NOT NULL PRIMARY KEY,
    seq             BIGINT NOT NULL UNIQUE,
    ion             TEXT   NOT NULL,
    pipeline        TEXT   NOT NULL,
    replica         TEXT,
    camera          TEXT   NOT NULL,
    frame           BIGINT NOT NULL,
    time_ms         BIGINT NOT NULL,
    verdict         TEXT   NOT NULL CHECK (verdict IN ('grant', 'deny', 'unknown', 'error', 'label')),
    person          TEXT,
    label           TEXT,
    labels          TEXT,
    score           DOUBLE PRECISION,
    threshold       DOUBLE PRECISION,
    model_version   BIGINT NOT NULL,
    gallery_version BIGINT NOT NULL,
    list_revision   BIGINT NOT NULL,
    latency_us      BIGINT NOT NULL,
    durable_us      BIGINT NOT NULL,
    brightness      DOUBLE PRECISION,
    error           TEXT,
    image           TEXT,
    pack            BIGINT NOT NULL DEFAULT 0,
    pack_offset     BIGINT NOT NULL DEFAULT 0,
    pack_bytes      BIGINT NOT NULL DEFAULT 0,
    UNIQUE (ion, camera, frame)
);
INSERT INTO decisions_with_labels
    (id, seq, ion, pipeline, replica, camera, frame, time_ms, verdict, person, score, threshold, model_version,
     gallery_version, list_revision, latency_us, durable_us, brightness, error, image, pack, pack_offset, pack_bytes)
    SELECT id, seq, ion, pipeline, replica, camera, frame, time_ms, verdict, person, score, threshold, model_version,
           gallery_version, list_revision, latency_us, durable_us, brightness, error, image, pack, pack_offset, pack_bytes
    FROM decisions;
DROP TABLE decisions;
ALTER TABLE decisions_with_labels RENAME TO decisions;
CREATE INDEX decisions_by_ion ON decisions (ion, seq);
CREATE INDEX decisions_by_time ON decisions (ion, time_ms);
CREATE INDEX decisions_by_time_of_all ON decisions (time_ms);
CREATE INDEX decisions_by_person ON decisions (person, time_ms);
CREATE INDEX decisions_by_label ON decisions (label, time_ms) WHERE label IS NOT NULL;
CREATE INDEX decisions_blob_images ON decisions (image) WHERE image IS NOT NULL AND pack = 0;
