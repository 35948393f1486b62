-- What names a frame whose source has no numbers of its own.

ALTER TABLE decisions ADD COLUMN key TEXT;
CREATE UNIQUE INDEX decisions_by_key ON decisions (ion, key) WHERE key IS NOT NULL;
