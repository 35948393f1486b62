-- Events and alerts keep the project of what they are about, as it was when they were written. NULL: the platform's.
-- Those of before get the project that it is of now; what is not there any more was nobody's, and stays so.
ALTER TABLE events ADD COLUMN project TEXT;
ALTER TABLE alerts ADD COLUMN project TEXT;

-- Each subject is looked up once, by its key: "NOUN/KEY" or "NOUN/KEY/…".
CREATE TEMP TABLE about (subject TEXT NOT NULL PRIMARY KEY, noun TEXT NOT NULL, key TEXT NOT NULL, project TEXT)
    WITHOUT ROWID;
INSERT INTO about (subject, noun, key)
    SELECT subject, substr(subject, 1, instr(subject, '/') - 1), substr(subject, instr(subject, '/') + 1)
    FROM (SELECT subject FROM events UNION SELECT subject FROM alerts) WHERE instr(subject, '/') > 0;
UPDATE about SET key = substr(key, 1, instr(key, '/') - 1) WHERE instr(key, '/') > 0;
UPDATE about SET project = CASE noun
    WHEN 'project' THEN key
    WHEN 'job' THEN (SELECT project FROM jobs WHERE id = key)
    WHEN 'ion' THEN (SELECT project FROM ions WHERE name = key)
    WHEN 'run' THEN (SELECT project FROM runs WHERE id = key)
    WHEN 'model' THEN (SELECT project FROM models WHERE name = key)
    WHEN 'sweep' THEN (SELECT project FROM sweeps WHERE id = key)
    WHEN 'dataset' THEN (SELECT project FROM datasets WHERE name = key)
    WHEN 'deployment' THEN (SELECT project FROM deployments WHERE name = key) END;
DELETE FROM about WHERE project IS NULL;

-- In the order of the rows; those of the platform are not written.
UPDATE events SET project = (SELECT project FROM about WHERE subject = events.subject)
    WHERE subject IN (SELECT subject FROM about);
UPDATE alerts SET project = (SELECT project FROM about WHERE subject = alerts.subject)
    WHERE subject IN (SELECT subject FROM about);
DROP TABLE about;
