-- How long a project keeps what is its own, and what the platform allows it. A row without a time holds no more, and says
-- that rows of that kind may have gone from between others.
CREATE TABLE project_retention (
    id      TEXT   NOT NULL PRIMARY KEY,
    project TEXT   NOT NULL REFERENCES projects (name),
    kind    TEXT   NOT NULL,
    keep_ms BIGINT,
    actor   TEXT   NOT NULL,
    time_ms BIGINT NOT NULL,
    UNIQUE (project, kind)
);

CREATE TABLE retention_bounds (
    kind    TEXT   NOT NULL PRIMARY KEY,
    min_ms  BIGINT NOT NULL,
    max_ms  BIGINT NOT NULL,
    actor   TEXT   NOT NULL,
    time_ms BIGINT NOT NULL
);

-- Which pictures of an ION are older than a time.
CREATE INDEX decisions_with_image ON decisions (ion, time_ms) WHERE image IS NOT NULL;
