-- Rollouts: candidates that are tried among the requests of a deployment. SQLite cannot change a CHECK:
-- the state's column is made anew.

ALTER TABLE ion_candidates ADD COLUMN share_ppm   BIGINT  NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN is_mirrored INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN step        BIGINT  NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN step_ms     BIGINT  NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN begun_ms    BIGINT  NOT NULL DEFAULT 0;
ALTER TABLE ion_candidates ADD COLUMN base        TEXT;

DROP INDEX ion_candidates_serving;
ALTER TABLE ion_candidates RENAME COLUMN state TO old_state;
ALTER TABLE ion_candidates ADD COLUMN state TEXT NOT NULL DEFAULT 'REJECTED'
    CHECK (state IN ('PENDING_REVIEW', 'WAITING', 'APPROVED', 'SHADOW', 'CANARY', 'SERVING', 'RETIRED',
                     'REJECTED', 'ROLLED_BACK'));
UPDATE ion_candidates SET state = old_state;
ALTER TABLE ion_candidates DROP COLUMN old_state;
CREATE UNIQUE INDEX ion_candidates_serving ON ion_candidates (ion, link) WHERE state = 'SERVING';
