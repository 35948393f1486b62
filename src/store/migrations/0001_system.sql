-- Who may do what, what happened, what must still be done.
-- One dialect for SQLite and PostgreSQL: names are keys where people name things once and for all,
-- times are milliseconds since 1970 UTC (0 = not yet, never), booleans are 0 or 1.

CREATE TABLE counters (
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE settings (
    key        TEXT   NOT NULL PRIMARY KEY,
    value      TEXT   NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE TABLE projects (
    name        TEXT   NOT NULL PRIMARY KEY,
    description TEXT,
    created_ms  BIGINT NOT NULL
);

CREATE TABLE users (
    name        TEXT    NOT NULL PRIMARY KEY,
    kind        TEXT    NOT NULL CHECK (kind IN ('person', 'service')),
    role        TEXT    NOT NULL,
    is_disabled INTEGER NOT NULL,
    created_ms  BIGINT  NOT NULL
);

CREATE TABLE tokens (
    id          TEXT   NOT NULL PRIMARY KEY,
    "user"      TEXT   NOT NULL REFERENCES users (name),
    name        TEXT   NOT NULL,
    role        TEXT   NOT NULL,
    secret_hash TEXT   NOT NULL UNIQUE,
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL
);

CREATE TABLE sessions (
    id          TEXT   NOT NULL PRIMARY KEY,
    "user"      TEXT   NOT NULL REFERENCES users (name),
    secret_hash TEXT   NOT NULL UNIQUE,
    csrf        TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL
);

CREATE TABLE login_links (
    id          TEXT   NOT NULL PRIMARY KEY,
    "user"      TEXT   NOT NULL REFERENCES users (name),
    secret_hash TEXT   NOT NULL UNIQUE,
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL,
    used_ms     BIGINT NOT NULL
);

CREATE TABLE events (
    seq     BIGINT NOT NULL PRIMARY KEY,
    time_ms BIGINT NOT NULL,
    topic   TEXT   NOT NULL,
    kind    TEXT   NOT NULL,
    subject TEXT,
    actor   TEXT,
    message TEXT   NOT NULL,
    data    TEXT
);
CREATE INDEX events_by_subject ON events (subject, seq);

CREATE TABLE alerts (
    id              TEXT   NOT NULL PRIMARY KEY,
    key             TEXT   NOT NULL,
    severity        TEXT   NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    kind            TEXT   NOT NULL,
    subject         TEXT,
    message         TEXT   NOT NULL,
    data            TEXT,
    state           TEXT   NOT NULL CHECK (state IN ('open', 'acknowledged', 'resolved')),
    count           BIGINT NOT NULL,
    raised_ms       BIGINT NOT NULL,
    last_ms         BIGINT NOT NULL,
    acknowledged_by TEXT,
    acknowledged_ms BIGINT NOT NULL,
    resolved_ms     BIGINT NOT NULL
);
-- One alert that is not resolved per key.
CREATE UNIQUE INDEX alerts_by_key ON alerts (key) WHERE state <> 'resolved';

CREATE TABLE outbox (
    seq        BIGINT NOT NULL PRIMARY KEY,
    key        TEXT   NOT NULL UNIQUE,
    kind       TEXT   NOT NULL,
    payload    TEXT   NOT NULL,
    state      TEXT   NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
    attempts   BIGINT NOT NULL,
    due_ms     BIGINT NOT NULL,
    error      TEXT,
    created_ms BIGINT NOT NULL,
    done_ms    BIGINT NOT NULL
);
CREATE INDEX outbox_pending ON outbox (due_ms, seq) WHERE state = 'pending';
