-- Acts and accesses are chained by hashes (src/store/chain.h). What is older than this has none. Retention cuts a
-- chain's old end, and its row here says what was cut and with which hash the rest goes on.

ALTER TABLE events ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN hash TEXT;

CREATE TABLE audit_chains (
    trail         BIGINT NOT NULL PRIMARY KEY,
    begins_after  BIGINT NOT NULL,
    number        BIGINT NOT NULL DEFAULT 0,
    hash          TEXT   NOT NULL,
    cut_number    BIGINT NOT NULL DEFAULT 0,
    cut_hash      TEXT   NOT NULL,
    cut_first_seq BIGINT NOT NULL DEFAULT 0,
    cut_last_seq  BIGINT NOT NULL DEFAULT 0,
    cut_first_ms  BIGINT NOT NULL DEFAULT 0,
    cut_last_ms   BIGINT NOT NULL DEFAULT 0
);
INSERT INTO audit_chains (trail, begins_after, hash, cut_hash)
    SELECT t.trail, coalesce((SELECT max(seq) FROM events), 0),
           '0000000000000000000000000000000000000000000000000000000000000000',
           '0000000000000000000000000000000000000000000000000000000000000000'
    FROM (SELECT 1 AS trail UNION ALL SELECT 2) AS t;

-- People whose photos were deleted. What is not done is done when the server starts again.
CREATE TABLE forgotten_people (
    id         TEXT   NOT NULL PRIMARY KEY,
    person     TEXT   NOT NULL,
    project    TEXT   NOT NULL,
    state      TEXT   NOT NULL CHECK (state IN ('running', 'done')),
    actor      TEXT   NOT NULL,
    reason     TEXT,
    summary    TEXT,
    created_ms BIGINT NOT NULL,
    done_ms    BIGINT NOT NULL DEFAULT 0
);

-- Tombstones: of which versions photos are gone.
CREATE TABLE dataset_tombstones (
    id         TEXT   NOT NULL PRIMARY KEY,
    forgotten  TEXT   NOT NULL REFERENCES forgotten_people (id),
    dataset    TEXT   NOT NULL REFERENCES datasets (name),
    version    BIGINT NOT NULL,
    person     TEXT   NOT NULL,
    n_files    BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    time_ms    BIGINT NOT NULL,
    UNIQUE (dataset, version, person)
);
