-- With whose rights a rule of alerts acts: who set it last. Of those that are there only who made them is known.
ALTER TABLE alert_rules ADD COLUMN set_by TEXT;
UPDATE alert_rules SET set_by = created_by;
