-- What is tried has a state that its policy names: no CHECK repeats them. SQLite cannot change one: the state's
-- column is made anew.

DROP INDEX ion_candidates_serving;
DROP INDEX ion_candidates_by_state;
DROP INDEX ion_candidates_in_use;
ALTER TABLE ion_candidates RENAME COLUMN state TO old_state;
ALTER TABLE ion_candidates ADD COLUMN state TEXT NOT NULL DEFAULT 'REJECTED';
UPDATE ion_candidates SET state = old_state;
ALTER TABLE ion_candidates DROP COLUMN old_state;
CREATE UNIQUE INDEX ion_candidates_serving ON ion_candidates (ion, link) WHERE state = 'SERVING';
CREATE INDEX ion_candidates_by_state ON ion_candidates (ion, link, state);
CREATE INDEX ion_candidates_in_use ON ion_candidates (id, model_version)
    WHERE state NOT IN ('RETIRED', 'REJECTED', 'ROLLED_BACK');
