-- A page of what is rare among much costs no more than one of what is common.

CREATE INDEX decisions_by_verdict ON decisions (ion, verdict, time_ms);
CREATE INDEX decisions_by_camera ON decisions (ion, camera, time_ms);
CREATE INDEX events_by_topic ON events (topic, seq);
CREATE INDEX events_by_actor ON events (actor, seq) WHERE actor IS NOT NULL;
-- Nearly all are "info".
CREATE INDEX events_by_severity ON events (severity, seq) WHERE severity <> 'info';
CREATE INDEX runs_by_status ON runs (status, start_ms DESC, id);
CREATE INDEX feedback_by_number ON feedback (ion, seq);
CREATE INDEX outcomes_by_number ON outcomes (deployment, seq);

-- Most jobs are of no ION, and a task that waits has no node: rows that nobody looks for by these.
DROP INDEX jobs_by_ion;
CREATE INDEX jobs_by_ion ON jobs (ion, pipeline) WHERE ion IS NOT NULL;
DROP INDEX tasks_by_node;
CREATE INDEX tasks_by_node ON tasks (node, state) WHERE node IS NOT NULL;

-- All that is read of the newest that succeeded, in one place.
DROP INDEX jobs_succeeded;
CREATE INDEX jobs_succeeded ON jobs (revision, id, name, project, ion, pipeline, started_ms, finished_ms, state)
    WHERE state = 'SUCCEEDED';
