-- Files that runs leave, and the registry as MLflow's clients know it.

-- A path within a run, and the blob that its bytes are.
CREATE TABLE run_artifacts (
    run        TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    path       TEXT   NOT NULL,
    blob       TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    created_by TEXT,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (run, path)
) WITHOUT ROWID;
CREATE INDEX run_artifacts_by_blob ON run_artifacts (blob);

-- An artifact that comes in parts, which lie in the state folder's parts/ID.
CREATE TABLE artifact_uploads (
    id         TEXT   NOT NULL PRIMARY KEY,
    run        TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    path       TEXT   NOT NULL,
    n_parts    BIGINT NOT NULL,
    created_by TEXT,
    created_ms BIGINT NOT NULL
);
CREATE INDEX artifact_uploads_by_run ON artifact_uploads (run, path);

-- What a version came from. A version without a file that can be served has the empty text as its blob,
-- and a sentence that says why.
ALTER TABLE model_versions ADD COLUMN source TEXT;
ALTER TABLE model_versions ADD COLUMN source_run TEXT; -- as its maker called it, whether it is there or not
ALTER TABLE model_versions ADD COLUMN run_link TEXT;
ALTER TABLE model_versions ADD COLUMN description TEXT;
ALTER TABLE model_versions ADD COLUMN stage TEXT NOT NULL DEFAULT 'None'
    CHECK (stage IN ('None', 'Staging', 'Production', 'Archived'));
ALTER TABLE model_versions ADD COLUMN unservable TEXT;
ALTER TABLE model_versions ADD COLUMN updated_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE models ADD COLUMN updated_ms BIGINT NOT NULL DEFAULT 0;

CREATE TABLE model_tags (
    model TEXT NOT NULL REFERENCES models (name),
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID;
CREATE TABLE model_version_tags (
    version TEXT NOT NULL REFERENCES model_versions (id),
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (version, key)
) WITHOUT ROWID;

-- The alias that a deployment follows; NULL: none. Its version becomes the deployment's when it moves.
ALTER TABLE deployments ADD COLUMN follows TEXT;
