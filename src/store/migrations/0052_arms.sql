-- Two versions compared among the requests of a deployment: what came of requests, and the sums of it by
-- version while a test runs. SQLite cannot change a CHECK: the state's column is made anew.

DROP INDEX ion_candidates_serving;
ALTER TABLE ion_candidates RENAME COLUMN state TO old_state;
ALTER TABLE ion_candidates ADD COLUMN state TEXT NOT NULL DEFAULT 'REJECTED'
    CHECK (state IN ('PENDING_REVIEW', 'WAITING', 'APPROVED', 'SHADOW', 'CANARY', 'AB', 'SERVING', 'RETIRED',
                     'REJECTED', 'ROLLED_BACK'));
UPDATE ion_candidates SET state = old_state;
ALTER TABLE ion_candidates DROP COLUMN old_state;
CREATE UNIQUE INDEX ion_candidates_serving ON ion_candidates (ion, link) WHERE state = 'SERVING';

-- No reference to deployments: what came of requests outlives them.
CREATE TABLE outcomes (
    id          TEXT   NOT NULL PRIMARY KEY, -- "REQUEST:NAME"
    seq         BIGINT NOT NULL UNIQUE,
    request     TEXT   NOT NULL,
    deployment  TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    name        TEXT   NOT NULL,
    value       DOUBLE PRECISION NOT NULL,
    decided     TEXT,
    truth       TEXT,
    answered_ms BIGINT NOT NULL,
    actor       TEXT,
    time_ms     BIGINT NOT NULL
);
CREATE INDEX outcomes_by_version ON outcomes (deployment, version, name, answered_ms);
CREATE INDEX outcomes_by_age ON outcomes (answered_ms, id);

CREATE TABLE ion_arms (
    id         TEXT   NOT NULL PRIMARY KEY, -- "CANDIDATE/VERSION"
    ion        TEXT   NOT NULL REFERENCES ions (name),
    candidate  TEXT   NOT NULL REFERENCES ion_candidates (id),
    deployment TEXT   NOT NULL,
    model      TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    metric     TEXT   NOT NULL,
    since_ms   BIGINT NOT NULL,
    n          BIGINT NOT NULL,
    origin     DOUBLE PRECISION NOT NULL,
    total      DOUBLE PRECISION NOT NULL,
    total2     DOUBLE PRECISION NOT NULL
);
CREATE INDEX ion_arms_by_deployment ON ion_arms (deployment, version, metric);

-- Business figures may name a version: of each there is one at a time.
ALTER TABLE kpis RENAME TO old_kpis;
CREATE TABLE kpis (
    seq           BIGINT NOT NULL PRIMARY KEY,
    ion           TEXT   NOT NULL REFERENCES ions (name),
    name          TEXT   NOT NULL,
    value         DOUBLE PRECISION NOT NULL,
    unit          TEXT,
    model         TEXT,
    model_version BIGINT NOT NULL DEFAULT 0,
    actor         TEXT,
    time_ms       BIGINT NOT NULL
);
INSERT INTO kpis (seq, ion, name, value, unit, actor, time_ms)
    SELECT seq, ion, name, value, unit, actor, time_ms FROM old_kpis;
DROP TABLE old_kpis;
CREATE UNIQUE INDEX kpis_by_time ON kpis (ion, name, model_version, time_ms, coalesce(model, ''));
