-- What lists of runs and decisions ask for.

CREATE INDEX model_versions_by_run ON model_versions (run);
