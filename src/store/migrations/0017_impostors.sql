-- People who are not enrolled and set the threshold are called impostors (ISO/IEC 19795).

ALTER TABLE ion_pipelines RENAME COLUMN strangers_version TO impostors_version;
ALTER TABLE ion_pipelines RENAME COLUMN strangers_path TO impostors_path;
ALTER TABLE ion_pipelines RENAME COLUMN strangers_digest TO impostors_digest;
ALTER TABLE ion_pipelines RENAME COLUMN strangers_blob TO impostors_blob;
UPDATE ions SET document = replace(document, '"strangers":', '"impostors":');
UPDATE ion_pipelines SET deployment = replace(deployment, '"strangers":', '"impostors":'), threshold = NULL;
