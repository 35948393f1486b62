-- Jobs whose tasks stop themselves when their node does not reach the server.

ALTER TABLE jobs ADD COLUMN fence_ms BIGINT NOT NULL DEFAULT 0; -- the node time-out that they go by; 0: they do not
