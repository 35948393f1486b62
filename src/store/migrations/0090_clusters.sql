-- Clusters that nodes are asked of, what they offer, and what was asked for.
CREATE TABLE clusters (
    name        TEXT    NOT NULL PRIMARY KEY,
    driver      TEXT    NOT NULL,
    options     TEXT    NOT NULL,
    is_draining INTEGER NOT NULL,
    after_ms    BIGINT  NOT NULL,
    idle_ms     BIGINT  NOT NULL,
    time_ms     BIGINT  NOT NULL,
    max_nodes   BIGINT  NOT NULL,
    state       TEXT    NOT NULL,
    said        TEXT,
    heard_ms    BIGINT  NOT NULL,
    created_by  TEXT    NOT NULL,
    created_ms  BIGINT  NOT NULL
);

CREATE TABLE pools (
    id             TEXT   NOT NULL PRIMARY KEY,
    cluster        TEXT   NOT NULL,
    name           TEXT   NOT NULL,
    cpu_slots      BIGINT NOT NULL,
    memory_bytes   BIGINT NOT NULL,
    n_accelerators BIGINT NOT NULL,
    accelerator    TEXT,
    max_nodes      BIGINT NOT NULL,
    time_max_ms    BIGINT NOT NULL,
    weight         REAL   NOT NULL,
    why            TEXT
);

CREATE TABLE allocations (
    id             TEXT   NOT NULL PRIMARY KEY,
    cluster        TEXT   NOT NULL,
    pool           TEXT   NOT NULL,
    state          TEXT   NOT NULL,
    their_id       TEXT,
    job            TEXT,
    project        TEXT,
    queue          TEXT,
    n_nodes        BIGINT NOT NULL,
    cpu_slots      BIGINT NOT NULL,
    memory_bytes   BIGINT NOT NULL,
    n_accelerators BIGINT NOT NULL,
    accelerator    TEXT,
    time_ms        BIGINT NOT NULL,
    nodes          TEXT,
    said           TEXT,
    why            TEXT,
    ending         TEXT,
    closed         TEXT,
    starts_ms      BIGINT NOT NULL,
    ends_ms        BIGINT NOT NULL,
    created_ms     BIGINT NOT NULL,
    asked_ms       BIGINT NOT NULL,
    started_ms     BIGINT NOT NULL,
    idle_since_ms  BIGINT NOT NULL,
    ended_ms       BIGINT NOT NULL
);
CREATE INDEX allocations_open ON allocations (cluster, id) WHERE state <> 'ended';
CREATE INDEX allocations_by_end ON allocations (ended_ms);

-- A node of an allocation: whose it is, which one's, and when it ends at the latest.
ALTER TABLE nodes ADD COLUMN cluster TEXT;
ALTER TABLE nodes ADD COLUMN allocation TEXT;
ALTER TABLE nodes ADD COLUMN ends_ms BIGINT NOT NULL DEFAULT 0;
CREATE INDEX nodes_by_allocation ON nodes (allocation) WHERE allocation IS NOT NULL;

-- A token that several nodes join with: how many, and those of which allocation; NULL: of none.
ALTER TABLE node_joins ADD COLUMN n_nodes BIGINT NOT NULL DEFAULT 1;
ALTER TABLE node_joins ADD COLUMN n_used BIGINT NOT NULL DEFAULT 0;
ALTER TABLE node_joins ADD COLUMN allocation TEXT;
UPDATE node_joins SET n_used = 1 WHERE used_ms <> 0;

-- Which clusters the jobs of a queue may have nodes of, in this order, and after what wait such are asked for.
ALTER TABLE queues ADD COLUMN clusters TEXT;
ALTER TABLE queues ADD COLUMN overflow_after_ms BIGINT NOT NULL DEFAULT -1;
