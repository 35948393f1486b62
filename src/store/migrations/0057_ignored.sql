-- What is given to a replica's source and is no frame.

ALTER TABLE ion_replicas ADD COLUMN frames_ignored BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ion_replicas ADD COLUMN why_ignored TEXT;
