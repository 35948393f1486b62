-- Why a node is about to go, as its agent says; NULL: it is not.
ALTER TABLE nodes ADD COLUMN leaving TEXT;

-- Which nodes have joined with a token.
CREATE TABLE node_join_uses (
    node_join TEXT NOT NULL REFERENCES node_joins (id) ON DELETE CASCADE,
    node      TEXT NOT NULL,
    PRIMARY KEY (node_join, node)
);
CREATE INDEX node_join_uses_by_node ON node_join_uses (node);
