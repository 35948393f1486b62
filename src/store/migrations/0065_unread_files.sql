-- Files of a version that are no whole pictures; versions of before are not looked through again.
ALTER TABLE dataset_versions ADD COLUMN n_unread BIGINT NOT NULL DEFAULT 0;
