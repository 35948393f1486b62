-- Chains of policies: where in its link's chain a candidate stands, since when, and who has approved
-- it there; and who made it. SQLite cannot change a CHECK: the state's column and the table of
-- decisions are made anew.

ALTER TABLE ion_candidates ADD COLUMN position    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN position_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN until_ms    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN waits_for   TEXT;
ALTER TABLE ion_candidates ADD COLUMN waits_why   TEXT;
ALTER TABLE ion_candidates ADD COLUMN approvals   TEXT;
ALTER TABLE ion_candidates ADD COLUMN made_by     TEXT;
UPDATE ion_candidates SET position_ms = created_ms;
UPDATE ion_candidates SET waits_for = 'manual', waits_why = 'manual: a person must approve it'
    WHERE state = 'PENDING_REVIEW';

DROP INDEX ion_candidates_serving;
ALTER TABLE ion_candidates RENAME COLUMN state TO old_state;
ALTER TABLE ion_candidates ADD COLUMN state TEXT NOT NULL DEFAULT 'REJECTED'
    CHECK (state IN ('PENDING_REVIEW', 'WAITING', 'APPROVED', 'SERVING', 'RETIRED', 'REJECTED', 'ROLLED_BACK'));
UPDATE ion_candidates SET state = old_state;
ALTER TABLE ion_candidates DROP COLUMN old_state;
CREATE UNIQUE INDEX ion_candidates_serving ON ion_candidates (ion, link) WHERE state = 'SERVING';

ALTER TABLE ion_pipelines ADD COLUMN cause_by   TEXT;
ALTER TABLE ion_pipelines ADD COLUMN pending_by TEXT;

CREATE TABLE policy_decisions_of_chains (
    id            TEXT   NOT NULL PRIMARY KEY,
    ion           TEXT   NOT NULL REFERENCES ions (name),
    link          TEXT   NOT NULL,
    candidate     TEXT   NOT NULL REFERENCES ion_candidates (id),
    model_version TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    policy        TEXT   NOT NULL,
    position      BIGINT NOT NULL DEFAULT 0,
    inputs        TEXT   NOT NULL,
    rule          TEXT   NOT NULL,
    verdict       TEXT   NOT NULL
                  CHECK (verdict IN ('pass', 'promote', 'wait', 'skip', 'reject', 'rollback', 'set')),
    actor         TEXT   NOT NULL,
    note          TEXT,
    time_ms       BIGINT NOT NULL
);
INSERT INTO policy_decisions_of_chains
    (id, ion, link, candidate, model_version, version, policy, inputs, rule, verdict, actor, note, time_ms)
    SELECT id, ion, link, candidate, model_version, version, policy, inputs, rule, verdict, actor, note, time_ms
    FROM policy_decisions;
DROP TABLE policy_decisions;
ALTER TABLE policy_decisions_of_chains RENAME TO policy_decisions;
CREATE INDEX policy_decisions_by_ion ON policy_decisions (ion, time_ms, id);
