-- Decisions by their own time, of one ION, of all, and of a person: a page of any hour without a
-- look at the rest.

CREATE INDEX decisions_by_time ON decisions (ion, time_ms);
CREATE INDEX decisions_by_time_of_all ON decisions (time_ms);
CREATE INDEX decisions_by_person ON decisions (person, time_ms);
