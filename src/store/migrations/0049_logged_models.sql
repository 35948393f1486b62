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
