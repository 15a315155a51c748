-- The values of the enums $1, and what they are called.
SELECT l.enumtypid, l.oid, l.enumlabel::text
FROM pg_catalog.pg_enum AS l
WHERE l.enumtypid = ANY ($1::oid[])
