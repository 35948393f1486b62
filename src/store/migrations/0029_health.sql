-- Business figures of an ION, and the truth about decisions that came later. No reference from
-- feedback to decisions: it outlives them, so it holds what it is counted by.

CREATE TABLE kpis (
    seq     BIGINT NOT NULL PRIMARY KEY,
    ion     TEXT   NOT NULL REFERENCES ions (name),
    name    TEXT   NOT NULL,
    value   DOUBLE PRECISION NOT NULL,
    unit    TEXT,
    actor   TEXT,
    time_ms BIGINT NOT NULL,
    UNIQUE (ion, name, time_ms)
);

CREATE TABLE feedback (
    decision      TEXT    NOT NULL PRIMARY KEY,
    seq           BIGINT  NOT NULL UNIQUE,
    ion           TEXT    NOT NULL,
    pipeline      TEXT    NOT NULL,
    camera        TEXT    NOT NULL,
    model_version BIGINT  NOT NULL,
    decided       TEXT    NOT NULL,
    truth         TEXT    NOT NULL,
    is_right      INTEGER NOT NULL,
    score         DOUBLE PRECISION,
    decided_ms    BIGINT  NOT NULL,
    actor         TEXT,
    time_ms       BIGINT  NOT NULL
);
CREATE INDEX feedback_by_ion ON feedback (ion, decided_ms);

-- What training's features looked like: attached to a version by whatever trained it.
CREATE TABLE model_baselines (
    version  TEXT   NOT NULL PRIMARY KEY REFERENCES model_versions (id) ON DELETE CASCADE,
    baseline TEXT   NOT NULL,
    actor    TEXT,
    time_ms  BIGINT NOT NULL
);
