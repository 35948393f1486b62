-- A session may do what the token may that its login link was made with, and ends with that token.
-- Sessions and links of before do not say which token that was: they end now, and people log in anew.

DROP TABLE login_links;
DROP TABLE sessions;

CREATE TABLE sessions (
    id          TEXT   NOT NULL PRIMARY KEY,
    "user"      TEXT   NOT NULL REFERENCES users (name),
    role        TEXT   NOT NULL,
    token       TEXT   REFERENCES tokens (id) ON DELETE CASCADE,
    address     TEXT,
    secret_hash TEXT   NOT NULL UNIQUE,
    csrf        TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL
);
CREATE INDEX sessions_by_token ON sessions (token);

CREATE TABLE login_links (
    id          TEXT   NOT NULL PRIMARY KEY,
    "user"      TEXT   NOT NULL REFERENCES users (name),
    role        TEXT   NOT NULL,
    token       TEXT   REFERENCES tokens (id) ON DELETE CASCADE,
    secret_hash TEXT   NOT NULL UNIQUE,
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL,
    used_ms     BIGINT NOT NULL
);
CREATE INDEX login_links_by_token ON login_links (token);
