-- Services: jobs with a port that browsers are brought to, and who may come in.
CREATE TABLE services (
    id              TEXT   NOT NULL PRIMARY KEY,
    name            TEXT   NOT NULL,
    project         TEXT   NOT NULL REFERENCES projects (name),
    kind            TEXT   NOT NULL,
    owner           TEXT   NOT NULL,
    is_shared       BIGINT NOT NULL,
    spec            TEXT   NOT NULL,
    port            BIGINT NOT NULL,
    keeps_path      BIGINT NOT NULL,
    secret          TEXT   NOT NULL,
    credential      TEXT,
    idle_after_ms   BIGINT NOT NULL,
    job             TEXT,
    address         TEXT,
    address_attempt BIGINT NOT NULL DEFAULT 0,
    reason          TEXT,
    created_ms      BIGINT NOT NULL,
    started_ms      BIGINT NOT NULL DEFAULT 0,
    stopped_ms      BIGINT NOT NULL DEFAULT 0,
    used_ms         BIGINT NOT NULL DEFAULT 0,
    UNIQUE (project, name)
);
CREATE INDEX services_by_job ON services (job);
-- A ticket is good once, a login until it ends or what it was made with does: a session or a token.
CREATE TABLE service_logins (
    hash       TEXT   NOT NULL PRIMARY KEY,
    service    TEXT   NOT NULL REFERENCES services (id),
    is_ticket  BIGINT NOT NULL,
    nonce      TEXT   NOT NULL,
    session    TEXT,
    token      TEXT,
    expires_ms BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX service_logins_by_service ON service_logins (service);
CREATE INDEX service_logins_by_expiry ON service_logins (expires_ms);
