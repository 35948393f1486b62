-- What is counted in places of cameras' pictures: what a decision says of one, and how they stand.

ALTER TABLE decisions ADD COLUMN counted TEXT;
ALTER TABLE ion_replicas ADD COLUMN places TEXT;
