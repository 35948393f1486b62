-- Any model, served: what a version takes and gives, names for versions, and where they answer.

-- JSON (docs/reference/signature.md); NULL: its file has not been looked at.
ALTER TABLE model_versions ADD COLUMN signature TEXT;

-- `id` is MODEL:ALIAS.
CREATE TABLE model_aliases (
    id         TEXT   NOT NULL PRIMARY KEY,
    model      TEXT   NOT NULL,
    alias      TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    actor      TEXT,
    updated_ms BIGINT NOT NULL,
    FOREIGN KEY (model, version) REFERENCES model_versions (model, version)
);

CREATE TABLE deployments (
    name          TEXT   NOT NULL PRIMARY KEY,
    project       TEXT   NOT NULL REFERENCES projects (name),
    model         TEXT   NOT NULL REFERENCES models (name),
    mirror        BIGINT NOT NULL,
    replicas_min  BIGINT NOT NULL,
    replicas_max  BIGINT NOT NULL,
    batch_max     BIGINT NOT NULL,
    delay_max_us  BIGINT NOT NULL,
    queue_max     BIGINT NOT NULL,
    cpus          BIGINT NOT NULL,
    memory_bytes  BIGINT NOT NULL,
    gpus          BIGINT NOT NULL,
    idle_after_ms BIGINT NOT NULL,
    hold_ms       BIGINT NOT NULL,
    secret        TEXT   NOT NULL,
    state         TEXT   NOT NULL CHECK (state IN ('DEPLOYING', 'SERVING', 'IDLE', 'FAILED')),
    reason        TEXT,
    state_ms      BIGINT NOT NULL,
    revision      BIGINT NOT NULL,
    previous      TEXT,
    n_wanted      BIGINT NOT NULL,
    n_started     BIGINT NOT NULL,
    n_failures    BIGINT NOT NULL,
    failure       TEXT,
    next_start_ms BIGINT NOT NULL,
    more_ms       BIGINT NOT NULL,
    less_ms       BIGINT NOT NULL,
    created_by    TEXT,
    created_ms    BIGINT NOT NULL,
    updated_ms    BIGINT NOT NULL
);

-- `id` is DEPLOYMENT:VERSION. Shares are in millionths: those asked for, and those in effect.
CREATE TABLE deployment_versions (
    id         TEXT   NOT NULL PRIMARY KEY,
    deployment TEXT   NOT NULL REFERENCES deployments (name),
    model      TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    wanted_ppm BIGINT NOT NULL,
    live_ppm   BIGINT NOT NULL,
    keep_ms    BIGINT NOT NULL,
    failure    TEXT,
    FOREIGN KEY (model, version) REFERENCES model_versions (model, version)
);

-- `id` is DEPLOYMENT-NUMBER.
CREATE TABLE deployment_replicas (
    id         TEXT   NOT NULL PRIMARY KEY,
    deployment TEXT   NOT NULL REFERENCES deployments (name),
    number     BIGINT NOT NULL,
    job        TEXT   REFERENCES jobs (id),
    state      TEXT   NOT NULL CHECK (state IN ('WANTED', 'STARTING', 'READY', 'SILENT', 'STOPPING')),
    url        TEXT,
    revision   BIGINT NOT NULL,
    versions   TEXT,
    n_running  BIGINT NOT NULL,
    stats      TEXT,
    time_ms    BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE INDEX deployment_replicas_by_job ON deployment_replicas (job);
