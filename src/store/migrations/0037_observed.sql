-- What triggers look at is found without reading what is older, or of others. Rows of triggers that no
-- document has any more go.

CREATE INDEX health_reports_by_time ON health_reports (ion, time_ms, id);
CREATE INDEX health_reports_by_replica ON health_reports (ion, pipeline, signal, replica, seq);
DROP INDEX feedback_by_ion;
CREATE INDEX feedback_by_ion ON feedback (ion, decided_ms, pipeline, is_right);
CREATE INDEX runs_by_pipeline ON runs (ion, pipeline, finished_ms, id) WHERE ion IS NOT NULL;
CREATE INDEX alerts_open_by_subject ON alerts (subject) WHERE state <> 'resolved';

DELETE FROM ion_triggers WHERE state = 'REMOVED';
