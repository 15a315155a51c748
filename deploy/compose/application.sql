-- The application's own: its table, its role, and a role for the relay. `migrate` adds the schema outbox and the grants.
CREATE ROLE app LOGIN PASSWORD 'app-local';
CREATE ROLE relay LOGIN PASSWORD 'relay-local';
CREATE TABLE public.bookings (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    customer   text        NOT NULL,
    region     text        NOT NULL,
    phone      text        NOT NULL,
    payload    text        NOT NULL
);
CREATE INDEX ON public.bookings (created_at, id);
-- The application leaves created_at out. `check` calls this proven for rows that use the default, and prints the trigger that
-- makes it proven for all; that one needs the schema outbox, which does not exist yet.
GRANT SELECT, INSERT (customer, region, phone, payload) ON public.bookings TO app;
