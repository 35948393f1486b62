-- Who asked for what of the cluster, had it, and used it. Amounts are thousandths of a device, or of a
-- CPU, times milliseconds.

-- What is not accounted for yet, from counted_ms on: one row for each model of what a task has
-- (attempt > 0), or asks for (attempt 0). '' is the model of what is no device. A row goes with the
-- transaction that ends the attempt, so nothing is counted twice.
CREATE TABLE usage_meters (
    task         TEXT   NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    attempt      BIGINT NOT NULL,
    model        TEXT   NOT NULL,
    node         TEXT,
    project      TEXT   NOT NULL,
    "user"       TEXT   NOT NULL,
    job          TEXT   NOT NULL,
    device_milli BIGINT NOT NULL,
    cpu_milli    BIGINT NOT NULL,
    counted_ms   BIGINT NOT NULL,
    PRIMARY KEY (task, attempt, model)
);
CREATE INDEX usage_meters_by_job ON usage_meters (job);
CREATE INDEX usage_meters_by_node ON usage_meters (node) WHERE attempt > 0;
CREATE INDEX usage_meters_waiting ON usage_meters (counted_ms) WHERE attempt = 0;

-- By the hour with the job; hours that are old become days without it.
CREATE TABLE usage (
    time_ms      BIGINT NOT NULL,
    span_ms      BIGINT NOT NULL,
    project      TEXT   NOT NULL,
    "user"       TEXT   NOT NULL,
    job          TEXT   NOT NULL,
    model        TEXT   NOT NULL,
    waited       BIGINT NOT NULL,
    given        BIGINT NOT NULL,
    used         BIGINT NOT NULL,
    unknown      BIGINT NOT NULL,
    idle         BIGINT NOT NULL,
    borrowed     BIGINT NOT NULL,
    cpu_waited   BIGINT NOT NULL,
    cpu_given    BIGINT NOT NULL,
    cpu_borrowed BIGINT NOT NULL,
    PRIMARY KEY (time_ms, span_ms, project, "user", job, model)
);
CREATE INDEX usage_by_span ON usage (span_ms, time_ms);
CREATE INDEX usage_by_job ON usage (job, time_ms) WHERE job <> '';

CREATE TRIGGER usage_becomes_days AFTER DELETE ON usage WHEN OLD.span_ms = 3600000
BEGIN
    INSERT INTO usage VALUES (OLD.time_ms - OLD.time_ms % 86400000, 86400000, OLD.project,
        OLD."user", '', OLD.model, OLD.waited, OLD.given, OLD.used, OLD.unknown, OLD.idle,
        OLD.borrowed, OLD.cpu_waited, OLD.cpu_given, OLD.cpu_borrowed)
    ON CONFLICT (time_ms, span_ms, project, "user", job, model) DO UPDATE SET
        waited = waited + excluded.waited, given = given + excluded.given,
        used = used + excluded.used, unknown = unknown + excluded.unknown,
        idle = idle + excluded.idle, borrowed = borrowed + excluded.borrowed,
        cpu_waited = cpu_waited + excluded.cpu_waited, cpu_given = cpu_given + excluded.cpu_given,
        cpu_borrowed = cpu_borrowed + excluded.cpu_borrowed;
END;

-- All that was ever counted: counters that never fall.
CREATE TABLE usage_totals (
    project   TEXT NOT NULL,
    model     TEXT NOT NULL,
    waited    DOUBLE PRECISION NOT NULL,
    given     DOUBLE PRECISION NOT NULL,
    used      DOUBLE PRECISION NOT NULL,
    unknown   DOUBLE PRECISION NOT NULL,
    idle      DOUBLE PRECISION NOT NULL,
    borrowed  DOUBLE PRECISION NOT NULL,
    cpu_given DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (project, model)
);

-- What queues have had: n samples of a time, added up. One row more for each queue says what it has
-- now (time_ms 0, n 1), and how much of what its project has is above the guarantee.
CREATE TABLE queue_history (
    time_ms          BIGINT NOT NULL,
    queue            TEXT   NOT NULL,
    project          TEXT,
    n                BIGINT NOT NULL,
    device_guarantee BIGINT NOT NULL,
    device_used      BIGINT NOT NULL,
    device_borrowed  BIGINT NOT NULL,
    device_waiting   BIGINT NOT NULL,
    cpu_guarantee    BIGINT NOT NULL,
    cpu_used         BIGINT NOT NULL,
    cpu_borrowed     BIGINT NOT NULL,
    cpu_waiting      BIGINT NOT NULL,
    PRIMARY KEY (time_ms, queue)
);
CREATE INDEX queue_history_by_project ON queue_history (project, time_ms);
