-- Versions of models, and models, that were deleted: the row stays for the lineage of runs, candidates and
-- decisions; the file goes with the next sweep. 0: not deleted.
ALTER TABLE model_versions ADD COLUMN deleted_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE model_versions ADD COLUMN deleted_by TEXT;
ALTER TABLE models ADD COLUMN deleted_ms BIGINT NOT NULL DEFAULT 0;
