-- Snapshots of IONs over a span of time (their files lie in the state folder), and what they need of
-- the past: every revision of an ION's document. Of those applied before this there is the last.

CREATE TABLE ion_revisions (
    id       TEXT   NOT NULL PRIMARY KEY,
    ion      TEXT   NOT NULL REFERENCES ions (name),
    revision BIGINT NOT NULL,
    document TEXT   NOT NULL,
    actor    TEXT,
    time_ms  BIGINT NOT NULL,
    UNIQUE (ion, revision)
);
INSERT INTO ion_revisions (id, ion, revision, document, actor, time_ms)
    SELECT name || ':' || revision, name, revision, document, created_by, updated_ms FROM ions;

-- No reference to ions: one that was imported may be of an ION that is not here.
CREATE TABLE snapshots (
    name        TEXT    NOT NULL PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    ion         TEXT    NOT NULL,
    project     TEXT    NOT NULL REFERENCES projects (name),
    from_ms     BIGINT  NOT NULL,
    to_ms       BIGINT  NOT NULL,
    revision    BIGINT  NOT NULL,
    n_rows      BIGINT  NOT NULL,
    has_models  INTEGER NOT NULL,
    is_imported INTEGER NOT NULL,
    bytes       BIGINT  NOT NULL,
    models      TEXT    NOT NULL,
    created_by  TEXT,
    created_ms  BIGINT  NOT NULL
);
