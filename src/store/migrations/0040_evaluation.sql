-- Policies have candidates measured on a dataset.
ALTER TABLE ion_candidates ADD COLUMN evaluation TEXT;
