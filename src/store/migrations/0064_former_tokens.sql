-- Replicas that still run as they were begun before migration 9, with the token that all tasks shared (job/former.h).
CREATE TABLE former_attempts (
    task   TEXT   NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    PRIMARY KEY (task, number)
);
INSERT INTO former_attempts (task, number)
    SELECT t.id, t.attempt FROM tasks t JOIN jobs j ON j.id = t.job
    WHERE j.kind = 'predict' AND j.state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED') AND t.attempt > 0
    AND t.started_ms < (SELECT applied_ms FROM schema_migrations WHERE version = 9);
