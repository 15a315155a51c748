SELECT 'SELECT ' || pg_catalog.string_agg(
         pg_catalog.format('pg_catalog.set_config(%L, %L, true)', s.name, pg_catalog.current_setting(s.name)), ', ')
FROM pg_catalog.unnest(ARRAY[
       'search_path', 'row_security', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'client_encoding',
       'TimeZone', 'DateStyle', 'IntervalStyle', 'bytea_output', 'extra_float_digits', 'standard_conforming_strings', 'array_nulls',
       'xmloption']) AS s (name)
