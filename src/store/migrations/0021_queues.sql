-- Queues: a tree of shares of the cluster, and what happens to jobs for its sake.

-- A queue of a project is a leaf. JSON in shares and times: src/job/queue.h. -1: the parent's.
CREATE TABLE queues (
    name       TEXT   NOT NULL PRIMARY KEY,
    parent     TEXT   REFERENCES queues (name),
    project    TEXT   UNIQUE REFERENCES projects (name),
    priority   BIGINT NOT NULL,
    shares     TEXT,
    times      TEXT,
    min_run_ms    BIGINT NOT NULL,
    idle_after_ms BIGINT NOT NULL,
    created_ms    BIGINT NOT NULL
);

-- queued_ms: since when the job waits, again if it was evicted; 0: since it was made.
ALTER TABLE jobs ADD COLUMN is_held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN eviction TEXT;
ALTER TABLE jobs ADD COLUMN n_evictions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN queued_ms BIGINT NOT NULL DEFAULT 0;
