-- What projects have had lately, by which what is left over is divided: amounts times milliseconds, of
-- which half is forgotten in every half-life, as they stood at time_ms; and how far the account of use
-- was taken in. The row of project '' is what there was to be had.
CREATE TABLE past_use (
    project      TEXT             NOT NULL PRIMARY KEY,
    time_ms      BIGINT           NOT NULL,
    devices      DOUBLE PRECISION NOT NULL,
    cpus         DOUBLE PRECISION NOT NULL,
    memory       DOUBLE PRECISION NOT NULL,
    devices_seen DOUBLE PRECISION NOT NULL,
    cpus_seen    DOUBLE PRECISION NOT NULL
);
