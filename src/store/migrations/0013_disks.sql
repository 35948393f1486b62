-- The disks of nodes, and what replicas have set aside because the server refused it.

ALTER TABLE nodes ADD COLUMN disk_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN disk_free_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN disk_id TEXT;
ALTER TABLE ion_replicas ADD COLUMN decisions_refused BIGINT NOT NULL DEFAULT 0;
