-- When nodes were heard of, apart from what they said: a short row that is written again and again.
CREATE TABLE nodes_heard (
    name         TEXT   NOT NULL PRIMARY KEY REFERENCES nodes (name) ON DELETE CASCADE,
    last_seen_ms BIGINT NOT NULL
);
