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
