-- Whether what a replica is connected to answers.

ALTER TABLE ion_replicas ADD COLUMN source TEXT;
ALTER TABLE ion_replicas ADD COLUMN consumers TEXT;
