-- A session says what it was begun with, and is limited where its link was; else it may what its user may now.
ALTER TABLE sessions ADD COLUMN proof TEXT NOT NULL DEFAULT 'link';
ALTER TABLE sessions ADD COLUMN limited_to TEXT;
UPDATE sessions SET limited_to = role WHERE token IS NOT NULL;
UPDATE sessions SET proof = 'password' WHERE token IS NULL;

-- Who is in a group because a provider of identities says so, with each login anew; NULL: an admin put them there.
ALTER TABLE group_members ADD COLUMN issuer TEXT;
