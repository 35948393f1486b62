-- Golden inputs: a file of requests and expected answers that a replica checks a version with before the
-- version takes traffic. SHA-256 of the blob; NULL: none.
ALTER TABLE model_versions ADD COLUMN golden TEXT;
