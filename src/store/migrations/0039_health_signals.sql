-- The last windows of one signal of a pipeline.
CREATE INDEX health_reports_by_signal ON health_reports (ion, pipeline, signal, seq);
