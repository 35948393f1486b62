-- What a candidate takes and gives, so that a policy can compare it with what serves. A signature is as good
-- as what is kept of it.

ALTER TABLE ion_candidates ADD COLUMN blocked TEXT; -- why its policy cannot judge it
ALTER TABLE ion_candidates ADD COLUMN interface TEXT;
UPDATE ion_candidates SET interface =
    (SELECT signature FROM model_versions WHERE model_versions.id = ion_candidates.model_version);
