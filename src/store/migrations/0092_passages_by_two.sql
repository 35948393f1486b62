-- Passages are few among decisions: what has an ION's verdict or camera is found among them, not among all of them. The indexes
-- say all that the list asks for, with its order: SQLite takes them before those of all decisions.
CREATE INDEX passages_by_verdict ON decisions (ion, verdict, time_ms, id) WHERE passage IS NOT NULL AND counted IS NULL;
CREATE INDEX passages_by_camera ON decisions (ion, camera, time_ms, id) WHERE passage IS NOT NULL AND counted IS NULL;
