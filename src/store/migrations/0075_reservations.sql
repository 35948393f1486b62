-- Nodes that are kept for the jobs of a project, or of a queue and those below it, for a span of time.
CREATE TABLE reservations (
    name       TEXT   NOT NULL PRIMARY KEY,
    project    TEXT   REFERENCES projects (name),
    queue      TEXT,
    nodes      TEXT   NOT NULL,
    gpus       BIGINT NOT NULL,
    cpus       BIGINT NOT NULL,
    from_ms    BIGINT NOT NULL,
    until_ms   BIGINT NOT NULL,
    created_by TEXT,
    created_ms BIGINT NOT NULL
);
CREATE INDEX reservations_by_end ON reservations (until_ms);
