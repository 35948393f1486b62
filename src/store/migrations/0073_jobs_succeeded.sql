-- The newest jobs that succeeded are found by this index whatever it is asked through: the state stands in front.
DROP INDEX jobs_succeeded;
CREATE INDEX jobs_succeeded ON jobs (state, revision, id, name, project, ion, pipeline, started_ms, finished_ms)
    WHERE state = 'SUCCEEDED';
