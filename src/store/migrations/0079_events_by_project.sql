-- Those who see some projects ask for the newest events of these.
CREATE INDEX events_by_project ON events (project, seq) WHERE project IS NOT NULL;
