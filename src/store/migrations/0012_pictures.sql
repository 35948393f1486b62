-- Where a decision's picture lies in the packs (pack 0: nowhere, or in a blob of an earlier Weir's),
-- and indexes for what retention looks for.

ALTER TABLE decisions ADD COLUMN pack BIGINT NOT NULL DEFAULT 0;
ALTER TABLE decisions ADD COLUMN pack_offset BIGINT NOT NULL DEFAULT 0;
ALTER TABLE decisions ADD COLUMN pack_bytes BIGINT NOT NULL DEFAULT 0;
CREATE INDEX decisions_blob_images ON decisions (image) WHERE image IS NOT NULL AND pack = 0;
CREATE INDEX runs_by_job ON runs (job);
