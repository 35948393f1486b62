-- Experiments; runs of any program; parameters, tags, measurements and inputs of runs.
-- A run has an integer beside its identifier, and names of parameters, tags and measurements are numbered: the
-- tables of what belongs to runs are long, and their keys are short.

CREATE TABLE experiments (
    id                BIGINT NOT NULL PRIMARY KEY,
    project           TEXT   NOT NULL REFERENCES projects (name),
    name              TEXT   NOT NULL,
    artifact_location TEXT, -- NULL: the server's
    created_by        TEXT,
    created_ms        BIGINT NOT NULL,
    updated_ms        BIGINT NOT NULL,
    deleted_ms        BIGINT NOT NULL DEFAULT 0,
    UNIQUE (project, name)
);
CREATE TABLE experiment_tags (
    experiment BIGINT NOT NULL REFERENCES experiments (id),
    key        TEXT   NOT NULL,
    value      TEXT   NOT NULL,
    PRIMARY KEY (experiment, key)
) WITHOUT ROWID;

-- Every project has an experiment "Default"; that of the project "default" is number 0.
INSERT INTO experiments (id, project, name, created_ms, updated_ms)
    SELECT CASE name WHEN 'default' THEN 0 ELSE row_number() OVER (ORDER BY name) END, name, 'Default', created_ms,
           created_ms
    FROM projects;
INSERT INTO counters (name, value) SELECT 'experiment', count(*) FROM projects;

-- SQLite cannot change a CHECK (the status SCHEDULED is new), nor what a row is kept by: the table is made anew.
-- What refers to it would forbid to drop it, and is put aside meanwhile.
CREATE TABLE tracked_runs (
    number          INTEGER NOT NULL PRIMARY KEY, -- given by SQLite, of this database only
    id              TEXT   NOT NULL UNIQUE,
    name            TEXT   NOT NULL,
    project         TEXT   NOT NULL REFERENCES projects (name),
    experiment      BIGINT NOT NULL DEFAULT 0,
    kind            TEXT   NOT NULL,
    status          TEXT   NOT NULL CHECK (status IN ('RUNNING', 'SCHEDULED', 'FINISHED', 'FAILED', 'KILLED')),
    job             TEXT REFERENCES jobs (id),
    ion             TEXT,
    pipeline        TEXT,
    dataset         TEXT,
    dataset_version BIGINT NOT NULL,
    code_version    TEXT,
    parameters      TEXT,
    summary         TEXT,
    artifact_root   TEXT, -- NULL: the server's
    "user"          TEXT,
    created_by      TEXT,
    created_ms      BIGINT NOT NULL,
    start_ms        BIGINT NOT NULL DEFAULT 0,
    finished_ms     BIGINT NOT NULL,
    deleted_ms      BIGINT NOT NULL DEFAULT 0
);
INSERT INTO tracked_runs (id, name, project, experiment, kind, status, job, ion, pipeline, dataset, dataset_version,
                          code_version, parameters, summary, created_by, created_ms, start_ms, finished_ms)
    SELECT r.id, r.name, r.project, e.id, r.kind, r.status, r.job, r.ion, r.pipeline, r.dataset, r.dataset_version,
           r.code_version, r.parameters, r.summary, r.created_by, r.created_ms, r.created_ms, r.finished_ms
    FROM runs r JOIN experiments e ON e.project = r.project AND e.name = 'Default' ORDER BY r.created_ms, r.id;

CREATE TABLE track_keys (
    id   INTEGER NOT NULL PRIMARY KEY, -- given by SQLite
    name TEXT    NOT NULL UNIQUE
);

-- Measurements: every one, and of each run and key the last: the greatest step, time and value. Not a number is a 0
-- with is_nan.
CREATE TABLE tracked_metrics (
    run     BIGINT NOT NULL REFERENCES tracked_runs (number),
    key     BIGINT NOT NULL,
    step    BIGINT NOT NULL,
    time_ms BIGINT NOT NULL,
    value   DOUBLE PRECISION NOT NULL,
    is_nan  INTEGER NOT NULL,
    PRIMARY KEY (run, key, step, time_ms, value, is_nan)
) WITHOUT ROWID;
CREATE TABLE latest_metrics (
    run     BIGINT NOT NULL REFERENCES tracked_runs (number),
    key     BIGINT NOT NULL,
    step    BIGINT NOT NULL,
    time_ms BIGINT NOT NULL,
    value   DOUBLE PRECISION NOT NULL,
    is_nan  INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE INDEX latest_metrics_by_value ON latest_metrics (key, is_nan, value, run);
INSERT INTO track_keys (name) SELECT DISTINCT key FROM metrics ORDER BY key;
INSERT INTO tracked_metrics (run, key, step, time_ms, value, is_nan)
    SELECT r.number, k.id, m.step, m.time_ms, coalesce(m.value, 0), m.value IS NULL
    FROM metrics m JOIN tracked_runs r ON r.id = m.run JOIN track_keys k ON k.name = m.key;
INSERT INTO latest_metrics (run, key, step, time_ms, value, is_nan)
    SELECT run, key, step, time_ms, value, is_nan FROM
        (SELECT *, row_number() OVER (PARTITION BY run, key ORDER BY step DESC, time_ms DESC, value DESC) AS place
         FROM tracked_metrics)
    WHERE place = 1;
DROP TABLE metrics;

CREATE TABLE versions_of_runs (id TEXT NOT NULL PRIMARY KEY, run TEXT NOT NULL);
INSERT INTO versions_of_runs SELECT id, run FROM model_versions WHERE run IS NOT NULL;
UPDATE model_versions SET run = NULL WHERE run IS NOT NULL;
DROP TABLE runs;
ALTER TABLE tracked_runs RENAME TO runs;
ALTER TABLE tracked_metrics RENAME TO metrics;
UPDATE model_versions SET run = (SELECT run FROM versions_of_runs v WHERE v.id = model_versions.id)
    WHERE id IN (SELECT id FROM versions_of_runs);
DROP TABLE versions_of_runs;
CREATE INDEX runs_by_time ON runs (created_ms, id);
CREATE INDEX runs_by_job ON runs (job);
CREATE INDEX runs_by_pipeline ON runs (ion, pipeline, finished_ms, id) WHERE ion IS NOT NULL;
CREATE INDEX runs_by_experiment ON runs (experiment, start_ms DESC, id);
CREATE INDEX runs_by_project ON runs (project, start_ms DESC, id);

-- What a run was started with: once written it stays.
CREATE TABLE run_parameters (
    run   BIGINT NOT NULL REFERENCES runs (number),
    key   BIGINT NOT NULL,
    value TEXT   NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE TABLE run_tags (
    run   BIGINT NOT NULL REFERENCES runs (number),
    key   BIGINT NOT NULL,
    value TEXT   NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
-- Those of runs of before: plain values, none of which is hidden.
INSERT INTO track_keys (name) SELECT DISTINCT p.key FROM runs r, json_each(r.parameters) p
    WHERE json_valid(r.parameters) AND json_type(r.parameters) = 'object' AND p.type NOT IN ('object', 'array', 'null')
    AND length(p.key) BETWEEN 1 AND 250 AND p.key NOT IN (SELECT name FROM track_keys);
INSERT INTO run_parameters (run, key, value) SELECT r.number, k.id,
    CASE p.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE substr(p.atom, 1, 6000) END
    FROM runs r, json_each(r.parameters) p JOIN track_keys k ON k.name = p.key
    WHERE json_valid(r.parameters) AND json_type(r.parameters) = 'object' AND p.type NOT IN ('object', 'array', 'null');

-- What a run read: sets of data by name and digest, whether Weir has them or not.
CREATE TABLE input_datasets (
    id          INTEGER NOT NULL PRIMARY KEY, -- given by SQLite
    experiment  BIGINT NOT NULL REFERENCES experiments (id),
    name        TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    source_type TEXT,
    source      TEXT,
    schema      TEXT,
    profile     TEXT,
    UNIQUE (experiment, name, digest)
);
CREATE TABLE run_inputs (
    run     BIGINT NOT NULL REFERENCES runs (number),
    dataset BIGINT NOT NULL REFERENCES input_datasets (id),
    context TEXT, -- of the tags: "training" …
    tags    TEXT   NOT NULL, -- JSON: [{"key", "value"}]
    PRIMARY KEY (run, dataset)
) WITHOUT ROWID;
CREATE INDEX run_inputs_by_dataset ON run_inputs (dataset);
