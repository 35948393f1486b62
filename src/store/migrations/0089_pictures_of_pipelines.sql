-- How long a prediction pipeline keeps pictures of its decisions, as its document says; 0: as its project does; below 0: none. It stays
-- with a pipeline that was removed, whose pictures are still there.
ALTER TABLE ion_pipelines ADD COLUMN keep_pictures_ms BIGINT NOT NULL DEFAULT 0;

-- Which pictures of a pipeline are older than a time.
CREATE INDEX decisions_with_image_by_pipeline ON decisions (ion, pipeline, time_ms) WHERE image IS NOT NULL;
