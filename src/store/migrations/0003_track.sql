-- Datasets, runs, metrics, models and their lineage.

CREATE TABLE datasets (
    name        TEXT    NOT NULL PRIMARY KEY,
    project     TEXT    NOT NULL REFERENCES projects (name),
    kind        TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    is_uploaded INTEGER NOT NULL,
    created_by  TEXT,
    created_ms  BIGINT  NOT NULL
);

CREATE TABLE dataset_versions (
    id         TEXT   NOT NULL PRIMARY KEY,
    dataset    TEXT   NOT NULL REFERENCES datasets (name),
    version    BIGINT NOT NULL,
    digest     TEXT   NOT NULL,
    blob       TEXT,
    n_files    BIGINT NOT NULL,
    n_classes  BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    UNIQUE (dataset, version)
);

CREATE TABLE runs (
    id              TEXT   NOT NULL PRIMARY KEY,
    name            TEXT   NOT NULL,
    project         TEXT   NOT NULL REFERENCES projects (name),
    kind            TEXT   NOT NULL,
    status          TEXT   NOT NULL CHECK (status IN ('RUNNING', 'FINISHED', 'FAILED', 'KILLED')),
    job             TEXT REFERENCES jobs (id),
    ion             TEXT,
    pipeline        TEXT,
    dataset         TEXT,
    dataset_version BIGINT NOT NULL,
    code_version    TEXT,
    parameters      TEXT,
    summary         TEXT,
    created_by      TEXT,
    created_ms      BIGINT NOT NULL,
    finished_ms     BIGINT NOT NULL
);
CREATE INDEX runs_by_time ON runs (created_ms, id);

-- Read per run only: no index over all runs.
CREATE TABLE metrics (
    run     TEXT   NOT NULL REFERENCES runs (id),
    key     TEXT   NOT NULL,
    step    BIGINT NOT NULL,
    value   DOUBLE PRECISION,
    time_ms BIGINT NOT NULL,
    PRIMARY KEY (run, key, step)
);

CREATE TABLE models (
    name        TEXT   NOT NULL PRIMARY KEY,
    project     TEXT   NOT NULL REFERENCES projects (name),
    description TEXT,
    created_by  TEXT,
    created_ms  BIGINT NOT NULL
);

CREATE TABLE model_versions (
    id              TEXT   NOT NULL PRIMARY KEY,
    model           TEXT   NOT NULL REFERENCES models (name),
    version         BIGINT NOT NULL,
    run             TEXT REFERENCES runs (id),
    blob            TEXT   NOT NULL,
    bytes           BIGINT NOT NULL,
    dataset         TEXT,
    dataset_version BIGINT NOT NULL,
    code_version    TEXT,
    parameters      TEXT,
    metrics         TEXT,
    baseline        TEXT,
    created_by      TEXT,
    created_ms      BIGINT NOT NULL,
    UNIQUE (model, version)
);
