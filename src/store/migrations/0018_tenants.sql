-- Teams: groups of users, who may do what in which project, and logging in with a password.

CREATE TABLE groups (
    name        TEXT   NOT NULL PRIMARY KEY,
    description TEXT,
    created_ms  BIGINT NOT NULL
);

-- `name` is GROUP/USER.
CREATE TABLE group_members (
    name       TEXT   NOT NULL UNIQUE,
    "group"    TEXT   NOT NULL REFERENCES groups (name) ON DELETE CASCADE,
    "user"     TEXT   NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY ("group", "user")
);
CREATE INDEX group_members_by_user ON group_members ("user");

-- `name` is PROJECT/user/NAME or PROJECT/group/NAME; one of the two is there.
CREATE TABLE project_members (
    name       TEXT   NOT NULL PRIMARY KEY,
    project    TEXT   NOT NULL REFERENCES projects (name) ON DELETE CASCADE,
    "user"     TEXT   REFERENCES users (name) ON DELETE CASCADE,
    "group"    TEXT   REFERENCES groups (name) ON DELETE CASCADE,
    role       TEXT   NOT NULL,
    created_by TEXT   NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE INDEX project_members_by_user ON project_members ("user");
CREATE INDEX project_members_by_group ON project_members ("group");

ALTER TABLE users ADD COLUMN password_hash TEXT;

-- Of a token: the only project it is for; when it was shown last.
ALTER TABLE tokens ADD COLUMN project TEXT REFERENCES projects (name);
ALTER TABLE tokens ADD COLUMN used_ms BIGINT NOT NULL DEFAULT 0;

-- The old name of a role.
UPDATE users SET role = 'ml-engineer' WHERE role = 'scientist';
UPDATE tokens SET role = 'ml-engineer' WHERE role = 'scientist';
UPDATE sessions SET role = 'ml-engineer' WHERE role = 'scientist';
UPDATE login_links SET role = 'ml-engineer' WHERE role = 'scientist';
