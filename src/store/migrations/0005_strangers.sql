-- People by whom a replica sets its threshold, and the threshold it reported.

ALTER TABLE ion_pipelines ADD COLUMN strangers_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_pipelines ADD COLUMN strangers_path TEXT;
ALTER TABLE ion_pipelines ADD COLUMN strangers_digest TEXT;
ALTER TABLE ion_pipelines ADD COLUMN strangers_blob TEXT;
ALTER TABLE ion_pipelines ADD COLUMN threshold TEXT;
