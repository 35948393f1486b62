-- Models that programs logged and that nobody need have registered: MLflow 3's. The files of each are artifacts of a run,
-- the one that it came from, or one that was made for it.
CREATE TABLE logged_models (
    id             TEXT   NOT NULL PRIMARY KEY,
    project        TEXT   NOT NULL REFERENCES projects (name),
    experiment     BIGINT NOT NULL REFERENCES experiments (id),
    run            TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE, -- whose artifacts its files are
    source_run     TEXT, -- the same, or NULL: its maker named none
    name           TEXT   NOT NULL,
    type           TEXT,
    status         TEXT   NOT NULL CHECK (status IN ('PENDING', 'READY', 'FAILED')),
    status_message TEXT,
    created_by     TEXT,
    created_ms     BIGINT NOT NULL,
    updated_ms     BIGINT NOT NULL,
    deleted_ms     BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX logged_models_of_experiment ON logged_models (experiment, created_ms);
CREATE INDEX logged_models_of_run ON logged_models (run);

CREATE TABLE logged_model_params (
    model TEXT NOT NULL REFERENCES logged_models (id) ON DELETE CASCADE,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID;
CREATE TABLE logged_model_tags (
    model TEXT NOT NULL REFERENCES logged_models (id) ON DELETE CASCADE,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID;

-- The last measurement of a key, by each run that measured, on each dataset; '' is none.
CREATE TABLE logged_model_metrics (
    model   TEXT   NOT NULL REFERENCES logged_models (id) ON DELETE CASCADE,
    key     TEXT   NOT NULL,
    run     TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    dataset TEXT   NOT NULL,
    digest  TEXT   NOT NULL,
    step    BIGINT NOT NULL,
    time_ms BIGINT NOT NULL,
    value   DOUBLE PRECISION NOT NULL, -- 0 if it is not a number
    is_nan  BIGINT NOT NULL,
    PRIMARY KEY (model, key, run, dataset, digest)
) WITHOUT ROWID;
CREATE INDEX logged_model_metrics_of_run ON logged_model_metrics (run);

-- What runs made of models, and read of them.
CREATE TABLE run_logged_models (
    run       TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    is_output BIGINT NOT NULL,
    model     TEXT   NOT NULL REFERENCES logged_models (id) ON DELETE CASCADE,
    step      BIGINT NOT NULL,
    PRIMARY KEY (run, is_output, model)
) WITHOUT ROWID;
CREATE INDEX run_logged_models_of_model ON run_logged_models (model);

-- A sweep can be paused, and so can a trial at a rung. SQLite cannot change a CHECK: the tables are made anew.
DROP INDEX sweeps_open;
DROP INDEX sweep_trials_of_job;
ALTER TABLE sweep_trials RENAME TO old_sweep_trials;
ALTER TABLE sweeps RENAME TO old_sweeps;
CREATE TABLE sweeps (
    id          TEXT   NOT NULL PRIMARY KEY,
    name        TEXT   NOT NULL,
    project     TEXT   NOT NULL REFERENCES projects (name),
    state       TEXT   NOT NULL CHECK (state IN ('RUNNING', 'PAUSED', 'STOPPING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
    reason      TEXT,
    ends_as     TEXT,
    document    TEXT   NOT NULL,
    method      TEXT   NOT NULL,
    metric      TEXT   NOT NULL,
    n_trials    BIGINT NOT NULL,
    n_made      BIGINT NOT NULL,
    n_open      BIGINT NOT NULL,
    n_paused    BIGINT NOT NULL,
    n_succeeded BIGINT NOT NULL,
    n_stopped   BIGINT NOT NULL,
    n_failed    BIGINT NOT NULL,
    best        BIGINT NOT NULL,
    best_value  DOUBLE PRECISION,
    work        DOUBLE PRECISION NOT NULL,
    created_by  TEXT,
    created_ms  BIGINT NOT NULL,
    paused_ms   BIGINT NOT NULL, -- since when; 0: it is not paused
    pauses_ms   BIGINT NOT NULL, -- how long it was, before
    ended_ms    BIGINT NOT NULL
);
CREATE INDEX sweeps_open ON sweeps (state, created_ms);
CREATE TABLE sweep_trials (
    id         TEXT   NOT NULL PRIMARY KEY,
    sweep      TEXT   NOT NULL REFERENCES sweeps (id),
    number     BIGINT NOT NULL,
    state      TEXT   NOT NULL CHECK (state IN ('WANTED', 'RUNNING', 'PAUSING', 'PAUSED', 'STOPPING', 'SUCCEEDED', 'STOPPED', 'FAILED',
                                                'CANCELLED')),
    parameters TEXT   NOT NULL,
    point      TEXT   NOT NULL,
    job        TEXT,
    run        TEXT,
    ends_as    TEXT,
    reason     TEXT,
    value      DOUBLE PRECISION,
    resource   DOUBLE PRECISION NOT NULL,
    step       BIGINT NOT NULL,
    rungs      TEXT   NOT NULL,
    created_ms BIGINT NOT NULL,
    started_ms BIGINT NOT NULL,
    ended_ms   BIGINT NOT NULL,
    UNIQUE (sweep, number)
);
CREATE UNIQUE INDEX sweep_trials_of_job ON sweep_trials (job);
INSERT INTO sweeps (id, name, project, state, reason, ends_as, document, method, metric, n_trials, n_made, n_open, n_paused, n_succeeded,
                    n_stopped, n_failed, best, best_value, work, created_by, created_ms, paused_ms, pauses_ms, ended_ms)
    SELECT id, name, project, state, reason, ends_as, document, method, metric, n_trials, n_made, n_open, 0, n_succeeded, n_stopped,
           n_failed, best, best_value, work, created_by, created_ms, 0, 0, ended_ms
    FROM old_sweeps;
INSERT INTO sweep_trials (id, sweep, number, state, parameters, point, job, run, ends_as, reason, value, resource, step, rungs, created_ms,
                          started_ms, ended_ms)
    SELECT id, sweep, number, state, parameters, point, job, run, ends_as, reason, value, resource, step, rungs, created_ms, started_ms,
           ended_ms
    FROM old_sweep_trials;
DROP TABLE old_sweep_trials;
DROP TABLE old_sweeps;
