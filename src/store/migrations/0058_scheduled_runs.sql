-- Runs of jobs that wait are SCHEDULED.

UPDATE runs SET status = 'SCHEDULED'
    WHERE status = 'RUNNING' AND job IN (SELECT id FROM jobs WHERE state = 'PENDING');
