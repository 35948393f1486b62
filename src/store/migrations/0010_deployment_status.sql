-- What became of a deployment, as its replicas report it.

ALTER TABLE ion_pipelines ADD COLUMN state_reason TEXT;
ALTER TABLE ion_pipelines ADD COLUMN state_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_pipelines ADD COLUMN served_revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_pipelines ADD COLUMN served_candidate TEXT;
ALTER TABLE ion_pipelines ADD COLUMN last_frame_ms BIGINT NOT NULL DEFAULT 0;
UPDATE ion_pipelines SET state_ms = updated_ms;
-- Whether they serve is not known before a replica says so.
UPDATE ion_pipelines SET state = 'DEPLOYING' WHERE state = 'SERVING';

CREATE TABLE ion_replicas (
    id              TEXT   NOT NULL PRIMARY KEY,
    ion             TEXT   NOT NULL REFERENCES ions (name),
    pipeline        TEXT   NOT NULL,
    replica         TEXT   NOT NULL,
    revision        BIGINT NOT NULL,
    state           TEXT   NOT NULL CHECK (state IN ('STARTING', 'APPLIED', 'FAILED')),
    reason          TEXT,
    served_revision BIGINT NOT NULL,
    frames_taken    BIGINT NOT NULL,
    frames_decided  BIGINT NOT NULL,
    frames_waiting  BIGINT NOT NULL,
    last_frame_ms   BIGINT NOT NULL,
    backlog_ms      BIGINT NOT NULL,
    backlog_reader  TEXT,
    time_ms         BIGINT NOT NULL,
    UNIQUE (ion, pipeline, replica)
);
