SELECT n.name, session_user::text, r.oid IS NOT NULL, r.rolname = session_user,
    pg_catalog.pg_has_role(
        session_user, r.oid,
        CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END
    ),
    pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), 'TEMPORARY'),
    pg_catalog.current_database()::text, pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS n(name, at)
LEFT JOIN pg_catalog.pg_roles AS r ON r.rolname = n.name
ORDER BY n.at
