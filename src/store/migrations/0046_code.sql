-- What jobs bring along: which project has sent which bytes, the folders that were checked, and secrets.
CREATE TABLE sent_blobs (
  project TEXT NOT NULL REFERENCES projects (name),
  sha256 TEXT NOT NULL,
  hour_ms BIGINT NOT NULL,
  PRIMARY KEY (project, sha256)
) WITHOUT ROWID;
CREATE INDEX sent_blobs_by_hour ON sent_blobs (hour_ms);
CREATE TABLE code_manifests (
  project TEXT NOT NULL REFERENCES projects (name),
  sha256 TEXT NOT NULL,
  files BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  time_ms BIGINT NOT NULL,
  PRIMARY KEY (project, sha256)
) WITHOUT ROWID;
CREATE INDEX code_manifests_by_sha256 ON code_manifests (sha256);
CREATE TABLE secrets (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL REFERENCES projects (name),
  name TEXT NOT NULL,
  sealed TEXT NOT NULL,
  created_by TEXT,
  created_ms BIGINT NOT NULL,
  updated_ms BIGINT NOT NULL
);
CREATE INDEX secrets_by_project ON secrets (project, name);
