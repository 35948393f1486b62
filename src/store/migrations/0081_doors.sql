-- Doors that are locked down by hand: nobody is let in there until they are released.
CREATE TABLE ion_lock_downs (
    id      TEXT   NOT NULL PRIMARY KEY,
    ion     TEXT   NOT NULL REFERENCES ions (name),
    door    TEXT   NOT NULL,
    note    TEXT,
    actor   TEXT,
    time_ms BIGINT NOT NULL,
    UNIQUE (ion, door)
);
