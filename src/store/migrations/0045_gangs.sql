-- The board of a job: small values by which its tasks find each other. A value is seen as long as
-- the attempt that wrote it lives, and goes with the job's end.
CREATE TABLE board (
    job TEXT NOT NULL,
    key TEXT NOT NULL,
    task TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    value TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (job, key)
) WITHOUT ROWID;

-- Arrays: jobs whose tasks are independent of each other; so many of them run at once (0: all).
ALTER TABLE jobs ADD COLUMN is_array BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN parallel BIGINT NOT NULL DEFAULT 0;
