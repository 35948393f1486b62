-- Nodes, jobs and their tasks.

CREATE TABLE nodes (
    name             TEXT    NOT NULL PRIMARY KEY,
    cpu_slots        BIGINT  NOT NULL,
    memory_bytes     BIGINT  NOT NULL,
    n_accelerators   BIGINT  NOT NULL,
    inventory        TEXT,
    agent_version    TEXT,
    is_draining      INTEGER NOT NULL,
    desired_revision BIGINT  NOT NULL,
    last_seen_ms     BIGINT  NOT NULL,
    created_ms       BIGINT  NOT NULL
);

CREATE TABLE jobs (
    id           TEXT   NOT NULL PRIMARY KEY,
    name         TEXT   NOT NULL,
    project      TEXT   NOT NULL REFERENCES projects (name),
    kind         TEXT   NOT NULL CHECK (kind IN ('train', 'predict', 'command')),
    spec         TEXT   NOT NULL,
    state        TEXT   NOT NULL,
    reason       TEXT,
    outcome      TEXT,
    attempt      BIGINT NOT NULL,
    max_restarts BIGINT NOT NULL,
    n_restarts   BIGINT NOT NULL,
    due_ms       BIGINT NOT NULL,
    ion          TEXT,
    pipeline     TEXT,
    training     BIGINT NOT NULL,
    run          TEXT,
    created_by   TEXT,
    created_ms   BIGINT NOT NULL,
    started_ms   BIGINT NOT NULL,
    finished_ms  BIGINT NOT NULL
);
CREATE INDEX jobs_by_state ON jobs (state, created_ms, id);
CREATE INDEX jobs_by_ion ON jobs (ion, pipeline);

CREATE TABLE tasks (
    id          TEXT   NOT NULL PRIMARY KEY,
    job         TEXT   NOT NULL REFERENCES jobs (id),
    rank        BIGINT NOT NULL,
    role        TEXT   NOT NULL,
    cpu_slots   BIGINT NOT NULL,
    definition  TEXT,
    node        TEXT REFERENCES nodes (name),
    attempt     BIGINT NOT NULL,
    state       TEXT   NOT NULL,
    desired     TEXT   NOT NULL,
    pid         BIGINT NOT NULL,
    exit_code   BIGINT NOT NULL,
    signal      BIGINT NOT NULL,
    message     TEXT,
    n_restarts  BIGINT NOT NULL,
    due_ms      BIGINT NOT NULL,
    started_ms  BIGINT NOT NULL,
    finished_ms BIGINT NOT NULL,
    UNIQUE (job, rank)
);
CREATE INDEX tasks_by_node ON tasks (node, state);
