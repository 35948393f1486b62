-- Of a passage's decision a film is kept: pictures of its frames, behind the decision's own in the same place of a pack. How many of
-- that place's bytes they are. What goes takes both; then nothing says that it is there.
ALTER TABLE decisions ADD COLUMN film_bytes BIGINT NOT NULL DEFAULT 0;

CREATE TRIGGER film_goes AFTER UPDATE OF image ON decisions
WHEN NEW.image IS NULL AND OLD.image IS NOT NULL AND NEW.passage IS NOT NULL
BEGIN
    UPDATE decisions SET film_bytes = 0, passage = replace(passage, '"has_picture":true', '"has_picture":false')
    WHERE id = NEW.id;
END;

-- Passages are listed among many more decisions of frames.
CREATE INDEX passages_by_time_of_all ON decisions (time_ms) WHERE passage IS NOT NULL;
CREATE INDEX passages_by_time ON decisions (ion, time_ms) WHERE passage IS NOT NULL;
