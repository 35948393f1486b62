-- Triggers of pipelines as they stand, and firings with what they looked at. How large versions of
-- datasets are in rows. Rows of triggers come with the engine's first look at each ION.

CREATE TABLE ion_triggers (
    id           TEXT   NOT NULL PRIMARY KEY,
    ion          TEXT   NOT NULL REFERENCES ions (name),
    pipeline     TEXT   NOT NULL,
    position     BIGINT NOT NULL,
    kind         TEXT   NOT NULL,
    text         TEXT   NOT NULL,
    state        TEXT   NOT NULL CHECK (state IN ('ARMED', 'REMOVED')),
    armed_ms     BIGINT NOT NULL,
    next_ms      BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    n_files      BIGINT NOT NULL,
    n_bytes      BIGINT NOT NULL,
    n_rows       BIGINT NOT NULL,
    used_version BIGINT NOT NULL,
    used_files   BIGINT NOT NULL,
    used_bytes   BIGINT NOT NULL,
    used_rows    BIGINT NOT NULL,
    n_fired      BIGINT NOT NULL,
    fired_ms     BIGINT NOT NULL,
    reason       TEXT,
    updated_ms   BIGINT NOT NULL
);
CREATE INDEX ion_triggers_by_ion ON ion_triggers (ion);

CREATE TABLE trigger_firings (
    id       TEXT   NOT NULL PRIMARY KEY,
    ion      TEXT   NOT NULL REFERENCES ions (name),
    number   BIGINT NOT NULL,
    pipeline TEXT   NOT NULL,
    position BIGINT NOT NULL,
    kind     TEXT   NOT NULL,
    training BIGINT NOT NULL,
    inputs   TEXT   NOT NULL,
    reason   TEXT   NOT NULL,
    actor    TEXT   NOT NULL,
    time_ms  BIGINT NOT NULL,
    UNIQUE (ion, number)
);

ALTER TABLE ions ADD COLUMN n_firings BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_pipelines ADD COLUMN started_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE dataset_versions ADD COLUMN n_rows BIGINT NOT NULL DEFAULT 0;
