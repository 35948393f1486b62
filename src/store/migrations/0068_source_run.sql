-- A run is not deleted while a version says that it came from it.
CREATE INDEX model_versions_by_source_run ON model_versions (source_run) WHERE source_run IS NOT NULL;
