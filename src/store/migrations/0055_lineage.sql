-- Lineage: who made a dataset's version, what each model version decided, and the ways from one to the other.

ALTER TABLE dataset_versions ADD COLUMN created_by TEXT; -- NULL: made before this was written down
ALTER TABLE dataset_versions ADD COLUMN run TEXT; -- whose program wrote its files; NULL: none of this server's
CREATE INDEX dataset_versions_by_run ON dataset_versions (run) WHERE run IS NOT NULL;

-- How many decisions there were, by what they were made with: nobody counts millions of rows, and those
-- that went are known. Kept by the triggers below, whoever adds or deletes.
CREATE TABLE decision_totals (
    ion             TEXT    NOT NULL,
    pipeline        TEXT    NOT NULL,
    model_version   BIGINT  NOT NULL,
    gallery_version BIGINT  NOT NULL,
    is_sandbox      INTEGER NOT NULL,
    n_made          BIGINT  NOT NULL,
    n_kept          BIGINT  NOT NULL,
    first_ms        BIGINT  NOT NULL, -- of all that were made
    last_ms         BIGINT  NOT NULL,
    PRIMARY KEY (ion, pipeline, model_version, gallery_version, is_sandbox)
) WITHOUT ROWID;
INSERT INTO decision_totals
    SELECT ion, pipeline, model_version, gallery_version, is_sandbox, count(*), count(*), min(time_ms), max(time_ms)
    FROM decisions GROUP BY ion, pipeline, model_version, gallery_version, is_sandbox;
-- Since when all are counted; 0: always. Some may have gone before.
INSERT INTO counters (name, value)
    SELECT 'decisions_counted_ms', CASE WHEN coalesce((SELECT min(seq) FROM decisions), 1) = 1
        AND coalesce((SELECT value FROM counters WHERE name = 'decisions'), 0) = (SELECT coalesce(max(seq), 0) FROM decisions)
        THEN 0 ELSE CAST(strftime('%s', 'now') AS BIGINT) * 1000 END;

CREATE TRIGGER decisions_come AFTER INSERT ON decisions
BEGIN
    INSERT INTO decision_totals VALUES (NEW.ion, NEW.pipeline, NEW.model_version, NEW.gallery_version, NEW.is_sandbox,
        1, 1, NEW.time_ms, NEW.time_ms)
    ON CONFLICT (ion, pipeline, model_version, gallery_version, is_sandbox) DO UPDATE SET
        n_made = n_made + 1, n_kept = n_kept + 1, first_ms = min(first_ms, excluded.first_ms),
        last_ms = max(last_ms, excluded.last_ms);
END;
CREATE TRIGGER decisions_go AFTER DELETE ON decisions
BEGIN
    UPDATE decision_totals SET n_kept = n_kept - 1
    WHERE ion = OLD.ion AND pipeline = OLD.pipeline AND model_version = OLD.model_version
        AND gallery_version = OLD.gallery_version AND is_sandbox = OLD.is_sandbox;
END;

CREATE INDEX decisions_by_version ON decisions (ion, pipeline, model_version, gallery_version, time_ms);
CREATE INDEX policy_decisions_by_candidate ON policy_decisions (candidate, time_ms);
CREATE INDEX ion_candidates_by_version ON ion_candidates (model_version);
-- What jobs read of the server's datasets: NAME@vN.
CREATE INDEX input_datasets_of_weir ON input_datasets (source) WHERE source_type = 'weir';
CREATE INDEX runs_by_dataset ON runs (dataset, dataset_version) WHERE dataset IS NOT NULL;
-- How good versions were found to be.
CREATE INDEX runs_that_measure ON runs (project, created_ms) WHERE kind = 'measure';
CREATE INDEX model_versions_by_dataset ON model_versions (dataset, dataset_version) WHERE dataset IS NOT NULL;
