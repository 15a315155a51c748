//! The table `public.bookings` of a storm: always under this name and with these columns, so that writers and checker are
//! the same for all kinds.

use tokio_postgres::Client;

use super::draw::{CreatedAt, Draw, Kind};

/// Pieces of time that a table by ranges has; the first begins a piece before its making.
const PIECES: u32 = 30;

const MAKE: &str = "\
CREATE SEQUENCE public.bookings_id;
CREATE TABLE public.bookings (
    id bigint NOT NULL DEFAULT nextval('public.bookings_id'),
    created_at timestamptz NOT NULL {default},
    customer text NOT NULL, region text NOT NULL, phone text NOT NULL, payload text NOT NULL,
    PRIMARY KEY ({key})
) {by};
{members}
CREATE INDEX ON public.bookings (created_at, id);
GRANT USAGE ON SEQUENCE public.bookings_id TO app;
DO $$ DECLARE member regclass; BEGIN
    FOR member IN SELECT c.oid FROM pg_class AS c WHERE c.relname LIKE 'bookings%' AND c.relkind IN ('r', 'p') LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON %s TO app', member);
    END LOOP;
END $$;";

const RANGES: &str = "\
DO $$ DECLARE start timestamptz := now(); BEGIN
    CREATE TABLE public.bookings_before PARTITION OF public.bookings FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
    FOR piece IN 0..{last} LOOP
        EXECUTE format('CREATE TABLE public.bookings_%s PARTITION OF public.bookings FOR VALUES FROM (%s) TO (%s)', piece,
            CASE WHEN piece = 0 THEN '''2020-01-01''' ELSE quote_literal(start + (piece - 1) * interval '10 s') END,
            CASE WHEN piece = {last} THEN 'MAXVALUE' ELSE quote_literal(start + piece * interval '10 s') END);
    END LOOP;
END $$;";

const CHILDREN: &str = "\
CREATE TABLE public.bookings_0 (PRIMARY KEY (id)) INHERITS (public.bookings);
CREATE TABLE public.bookings_1 (PRIMARY KEY (id)) INHERITS (public.bookings);
CREATE INDEX ON public.bookings_0 (created_at, id);
CREATE INDEX ON public.bookings_1 (created_at, id);";

/// The statement that makes it; the trigger needs the schema `outbox` and comes with [`stamp`].
pub fn make(draw: &Draw) -> String {
    let default = match draw.created_at {
        CreatedAt::Clock | CreatedAt::Stamp | CreatedAt::Always => "DEFAULT clock_timestamp()",
        CreatedAt::Now => "DEFAULT now()",
        CreatedAt::Sent => "",
    };
    let (key, by, members) = match draw.table {
        Kind::Plain => ("id", "", String::new()),
        Kind::Hash => ("id", "PARTITION BY HASH (id)", hashes()),
        Kind::Range => {
            ("id, created_at", "PARTITION BY RANGE (created_at)", RANGES.replace("{last}", &(PIECES - 1).to_string()))
        }
        Kind::Inheritance => ("id", "", CHILDREN.to_owned()),
    };
    let made = MAKE.replace("{default}", default).replace("{key}", key);
    made.replace("{by}", by).replace("{members}", &members)
}

fn hashes() -> String {
    let leaf = |rest| {
        format!(
            "CREATE TABLE public.bookings_{rest} PARTITION OF public.bookings \
             FOR VALUES WITH (MODULUS 4, REMAINDER {rest});\n"
        )
    };
    (0..4).map(leaf).collect()
}

/// Rows of the last hour, which the relay finds when it begins; the answer has their number.
pub fn preload(draw: &Draw) -> String {
    let tables: &[&str] = match draw.table {
        Kind::Plain | Kind::Hash | Kind::Range => &["bookings"],
        Kind::Inheritance => &["bookings", "bookings_0", "bookings_1"],
    };
    let fill = |table: &&str| {
        format!(
            "INSERT INTO public.{table} (created_at, customer, region, phone, payload) \
             SELECT now() - interval '1 hour' + n * interval '50 ms', 'customer-' || n % 200, 'north', '+15550000000', \
             repeat('x', 200) FROM generate_series(1, {}) AS n;\n",
            draw.preloaded
        )
    };
    tables.iter().map(fill).collect()
}

/// The stamp trigger, where the draw has one: on the root, and on what does not get it from there.
pub fn stamp(draw: &Draw) -> String {
    if !matches!(draw.created_at, CreatedAt::Stamp | CreatedAt::Always) {
        return String::new();
    }
    let with: &[&str] = match draw.table {
        Kind::Plain | Kind::Hash | Kind::Range => &["bookings"],
        Kind::Inheritance => &["bookings", "bookings_0", "bookings_1"],
    };
    let trigger = |table: &&str| {
        format!(
            "CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at ON public.{table} \
             FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at();\n"
        )
    };
    let mut sql: String = with.iter().map(trigger).collect();
    if draw.created_at == CreatedAt::Always {
        sql.push_str(
            "DO $$ DECLARE member regclass; BEGIN
                 FOR member IN SELECT tgrelid FROM pg_trigger WHERE tgname = 'zz_stamp_created_at' LOOP
                     EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER zz_stamp_created_at', member);
                 END LOOP;
             END $$;",
        );
    }
    sql
}

/// The tables that hold rows, roots of inheritance included.
pub async fn members(client: &Client) -> Result<Vec<String>, tokio_postgres::Error> {
    let sql = "SELECT c.relname::text FROM pg_class AS c WHERE c.relname LIKE 'bookings%' AND c.relkind = 'r' \
               AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'bookings_before' ORDER BY 1";
    Ok(client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}
