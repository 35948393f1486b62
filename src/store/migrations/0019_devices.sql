-- What nodes have, as their agents find it, and what people say of nodes.

-- `name` is NODE/INDEX. An index stays with its device's id for as long as the row is there.
CREATE TABLE devices (
    name              TEXT   NOT NULL UNIQUE,
    node              TEXT   NOT NULL REFERENCES nodes (name) ON DELETE CASCADE,
    idx               BIGINT NOT NULL,
    id                TEXT   NOT NULL,
    kind              TEXT   NOT NULL,
    model             TEXT,
    memory_bytes      BIGINT NOT NULL,
    parent            BIGINT NOT NULL,
    profile           TEXT,
    numa              BIGINT NOT NULL,
    state             TEXT   NOT NULL,
    reason            TEXT,
    temperature_c     DOUBLE PRECISION,
    power_w           DOUBLE PRECISION,
    utilisation_pct   DOUBLE PRECISION,
    memory_used_bytes BIGINT NOT NULL,
    ecc_errors        BIGINT NOT NULL,
    idle_since_ms     BIGINT NOT NULL,
    details           TEXT,
    changed_ms        BIGINT NOT NULL,
    PRIMARY KEY (node, idx)
);
CREATE UNIQUE INDEX devices_by_id ON devices (node, id);

-- JSON: {"zone": "a"} and [{"key", "value", "effect"}]. Why the node takes no tasks though it reports; NULL: it is healthy.
ALTER TABLE nodes ADD COLUMN labels TEXT;
ALTER TABLE nodes ADD COLUMN taints TEXT;
ALTER TABLE nodes ADD COLUMN unhealthy TEXT;

-- When it left the cluster (`weir node leave`); 0: it is part of it.
ALTER TABLE nodes ADD COLUMN left_ms BIGINT NOT NULL DEFAULT 0;

-- One-time tokens that machines join with. `used_by` is the node that did.
CREATE TABLE node_joins (
    id          TEXT   NOT NULL PRIMARY KEY,
    node        TEXT,
    secret_hash TEXT   NOT NULL UNIQUE,
    created_by  TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL,
    used_ms     BIGINT NOT NULL,
    used_by     TEXT
);
