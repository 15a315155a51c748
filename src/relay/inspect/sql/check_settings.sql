SELECT current_setting('TimeZone'), current_setting('row_security'),
    current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')
