-- Each attempt of a task has a token of its own, which the server computes; an agent's token is bound to a node.

-- Where each attempt was placed: its agent may report it, also once a later one runs elsewhere.
CREATE TABLE attempts (
    task   TEXT   NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    node   TEXT   NOT NULL,
    PRIMARY KEY (task, number)
);
INSERT INTO attempts (task, number, node)
    SELECT id, attempt, node FROM tasks WHERE node IS NOT NULL AND attempt > 0;

ALTER TABLE tokens ADD COLUMN node TEXT;

-- The token that all tasks shared.
DELETE FROM tokens WHERE role = 'worker';
DELETE FROM users WHERE name = 'worker' AND role = 'worker'
    AND NOT EXISTS (SELECT 1 FROM tokens WHERE "user" = 'worker')
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE "user" = 'worker')
    AND NOT EXISTS (SELECT 1 FROM login_links WHERE "user" = 'worker');
