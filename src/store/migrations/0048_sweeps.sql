-- Sweeps: many trials of one job, each with other parameters.
CREATE TABLE sweeps (
    id          TEXT   NOT NULL PRIMARY KEY,
    name        TEXT   NOT NULL,
    project     TEXT   NOT NULL REFERENCES projects (name),
    state       TEXT   NOT NULL CHECK (state IN ('RUNNING', 'STOPPING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
    reason      TEXT,
    ends_as     TEXT,
    document    TEXT   NOT NULL,
    method      TEXT   NOT NULL,
    metric      TEXT   NOT NULL,
    n_trials    BIGINT NOT NULL,
    n_made      BIGINT NOT NULL,
    n_open      BIGINT NOT NULL,
    n_succeeded BIGINT NOT NULL,
    n_stopped   BIGINT NOT NULL,
    n_failed    BIGINT NOT NULL,
    best        BIGINT NOT NULL,
    best_value  DOUBLE PRECISION,
    work        DOUBLE PRECISION NOT NULL,
    created_by  TEXT,
    created_ms  BIGINT NOT NULL,
    ended_ms    BIGINT NOT NULL
);
CREATE INDEX sweeps_open ON sweeps (state, created_ms);

-- `id` is SWEEP:NUMBER. Jobs and runs go by their own rules: a trial may outlive them.
CREATE TABLE sweep_trials (
    id         TEXT   NOT NULL PRIMARY KEY,
    sweep      TEXT   NOT NULL REFERENCES sweeps (id),
    number     BIGINT NOT NULL,
    state      TEXT   NOT NULL CHECK (state IN ('WANTED', 'RUNNING', 'STOPPING', 'SUCCEEDED', 'STOPPED', 'FAILED', 'CANCELLED')),
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
