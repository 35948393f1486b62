-- IONs: pipelines, what passes their links, who decided, and what replicas decided about frames.

CREATE TABLE ions (
    name          TEXT   NOT NULL PRIMARY KEY,
    project       TEXT   NOT NULL REFERENCES projects (name),
    document      TEXT   NOT NULL,
    state         TEXT   NOT NULL CHECK (state IN ('ACTIVE', 'DELETED')),
    revision      BIGINT NOT NULL,
    list_revision BIGINT NOT NULL,
    n_decisions   BIGINT NOT NULL,
    n_served      BIGINT NOT NULL,
    created_by    TEXT,
    created_ms    BIGINT NOT NULL,
    updated_ms    BIGINT NOT NULL
);

CREATE TABLE ion_pipelines (
    id                  TEXT   NOT NULL PRIMARY KEY,
    ion                 TEXT   NOT NULL REFERENCES ions (name),
    name                TEXT   NOT NULL,
    type                TEXT   NOT NULL CHECK (type IN ('training', 'prediction')),
    state               TEXT   NOT NULL,
    job                 TEXT,
    run                 TEXT,
    training            BIGINT NOT NULL,
    cause               TEXT,
    pending_cause       TEXT,
    dataset_version     BIGINT NOT NULL,
    next_fire_ms        BIGINT NOT NULL,
    candidate           TEXT,
    deployment_revision BIGINT NOT NULL,
    deployment          TEXT,
    gallery_version     BIGINT NOT NULL,
    gallery_path        TEXT,
    gallery_digest      TEXT,
    gallery_blob        TEXT,
    updated_ms          BIGINT NOT NULL,
    UNIQUE (ion, name)
);

CREATE TABLE ion_candidates (
    id            TEXT   NOT NULL PRIMARY KEY,
    ion           TEXT   NOT NULL REFERENCES ions (name),
    link          TEXT   NOT NULL,
    model         TEXT   NOT NULL,
    model_version TEXT   NOT NULL REFERENCES model_versions (id),
    version       BIGINT NOT NULL,
    blob          TEXT   NOT NULL,
    metrics       TEXT,
    state         TEXT   NOT NULL CHECK (state IN ('PENDING_REVIEW', 'APPROVED', 'SERVING', 'RETIRED',
                                                   'REJECTED', 'ROLLED_BACK')),
    served_seq    BIGINT NOT NULL,
    served_ms     BIGINT NOT NULL,
    created_ms    BIGINT NOT NULL,
    updated_ms    BIGINT NOT NULL,
    UNIQUE (ion, link, model_version)
);
-- The database itself refuses a second serving model on a link.
CREATE UNIQUE INDEX ion_candidates_serving ON ion_candidates (ion, link) WHERE state = 'SERVING';

CREATE TABLE policy_decisions (
    id            TEXT   NOT NULL PRIMARY KEY,
    ion           TEXT   NOT NULL REFERENCES ions (name),
    link          TEXT   NOT NULL,
    candidate     TEXT   NOT NULL REFERENCES ion_candidates (id),
    model_version TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    policy        TEXT   NOT NULL,
    inputs        TEXT   NOT NULL,
    rule          TEXT   NOT NULL,
    verdict       TEXT   NOT NULL CHECK (verdict IN ('promote', 'wait', 'skip', 'reject', 'rollback')),
    actor         TEXT   NOT NULL,
    note          TEXT,
    time_ms       BIGINT NOT NULL
);
CREATE INDEX policy_decisions_by_ion ON policy_decisions (ion, time_ms, id);

CREATE TABLE ion_members (
    id      TEXT   NOT NULL PRIMARY KEY,
    ion     TEXT   NOT NULL REFERENCES ions (name),
    person  TEXT   NOT NULL,
    list    TEXT   NOT NULL CHECK (list IN ('allow', 'deny')),
    actor   TEXT,
    time_ms BIGINT NOT NULL,
    UNIQUE (ion, person)
);

-- No reference to ions: a replica ships what it decided, whatever has become of its ION.
CREATE TABLE decisions (
    id              TEXT   NOT NULL PRIMARY KEY,
    seq             BIGINT NOT NULL UNIQUE,
    ion             TEXT   NOT NULL,
    pipeline        TEXT   NOT NULL,
    replica         TEXT,
    camera          TEXT   NOT NULL,
    frame           BIGINT NOT NULL,
    time_ms         BIGINT NOT NULL,
    verdict         TEXT   NOT NULL CHECK (verdict IN ('grant', 'deny', 'unknown', 'error')),
    person          TEXT,
    score           DOUBLE PRECISION,
    threshold       DOUBLE PRECISION,
    model_version   BIGINT NOT NULL,
    gallery_version BIGINT NOT NULL,
    list_revision   BIGINT NOT NULL,
    latency_us      BIGINT NOT NULL,
    durable_us      BIGINT NOT NULL,
    brightness      DOUBLE PRECISION,
    error           TEXT,
    image           TEXT,
    UNIQUE (ion, camera, frame)
);
CREATE INDEX decisions_by_ion ON decisions (ion, seq);

CREATE TABLE health_reports (
    id            TEXT    NOT NULL PRIMARY KEY,
    seq           BIGINT  NOT NULL UNIQUE,
    ion           TEXT    NOT NULL,
    pipeline      TEXT    NOT NULL,
    replica       TEXT,
    signal        TEXT    NOT NULL,
    statistic     TEXT    NOT NULL,
    value         DOUBLE PRECISION,
    p_value       DOUBLE PRECISION,
    drifted       INTEGER NOT NULL,
    n_samples     BIGINT  NOT NULL,
    model_version BIGINT  NOT NULL,
    detail        TEXT,
    time_ms       BIGINT  NOT NULL
);
CREATE INDEX health_reports_by_ion ON health_reports (ion, seq);
