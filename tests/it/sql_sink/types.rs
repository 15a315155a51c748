//! Values of every type come back as they are.

use super::relay;
use crate::support::{PATIENCE, Replica, config, database, eventually};

/// Types, and values that are easily lost: ends of ranges, quotes, backslashes, braces, the word NULL, NULL itself.
const VALUES: &[(&str, &[&str])] = &[
    ("boolean", &["true", "false"]),
    ("smallint", &["'-32768'"]),
    ("bigint", &["'-9223372036854775808'"]),
    ("real", &["'1.1754944e-38'", "'NaN'"]),
    ("double precision", &["'1.7976931348623157e308'", "'-Infinity'", "0.1"]),
    ("numeric", &["'123456789012345678901234567890.000000000000000001'", "'NaN'"]),
    ("money", &["'1234.56'"]),
    ("text", &["''", "'NULL'", "E'a\\\\b\"c,{d} ''e''\\n\\tü'"]),
    ("varchar(20)", &["' x '"]),
    ("char(5)", &["'ab'"]),
    ("\"char\"", &["'x'"]),
    ("name", &["'Odd Name'"]),
    ("bytea", &["'\\x00ff5c22'", "''"]),
    ("timestamptz", &["'2026-11-21 08:00:00.123456+05:30'", "'infinity'", "'0044-03-15 BC'"]),
    ("timestamp", &["'2026-03-29 02:30:00.5'"]),
    ("date", &["'-infinity'", "'2026-02-28'"]),
    ("time", &["'24:00:00'"]),
    ("timetz", &["'08:00:00-08'"]),
    ("interval", &["'-1 year +2 days -03:04:05.678'"]),
    ("uuid", &["'01890a5d-ac96-774b-bcce-b302099a8057'"]),
    ("json", &["'{\"a\" : [1, \"x\\\\\"]}'"]),
    ("jsonb", &["'{\"a\": \"\\\"NULL\\\"\"}'"]),
    ("inet", &["'10.1.2.3'", "'::1/64'"]),
    ("macaddr", &["'08:00:2b:01:02:03'"]),
    ("bit varying(8)", &["B'0101'"]),
    ("point", &["'(1,-2.5)'"]),
    ("box", &["'(3,4),(1,2)'"]),
    ("int4range", &["'[1,5)'", "'empty'"]),
    ("tsvector", &["'a:1 b:2A'"]),
    ("app.mood", &["'ok, \"fine\"'", "'NULL'"]),
    ("app.positive", &["7"]),
    ("app.pair", &["ROW(1, 'a \"b\", c')::app.pair"]),
    ("app.tags", &["'{a,\"b c\"}'"]),
];
const ARRAYS: &[(&str, &[&str])] = &[("text[]", &["'{a,NULL,\"NULL\",\"\"}'"]), ("integer[]", &["'{{1,2},{3,4}}'"])];

const TYPES: &str = "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; \
     CREATE TYPE app.mood AS ENUM ('ok, \"fine\"', 'NULL'); CREATE DOMAIN app.positive AS integer CHECK (VALUE > 0); \
     CREATE TYPE app.pair AS (a integer, b text); CREATE DOMAIN app.tags AS text[];";

async fn come_back(each: &str, columns: &[(&str, &[&str])]) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let names: Vec<String> = (0..columns.len()).map(|n| format!("c{n}")).collect();
    let definitions: Vec<String> = columns.iter().zip(&names).map(|((of, _), name)| format!("{name} {of}")).collect();
    let definitions = definitions.join(", ");
    owner
        .batch_execute(&format!(
            "{TYPES} CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
             created_at timestamptz NOT NULL DEFAULT clock_timestamp(), {definitions}); \
             CREATE INDEX ON public.bookings (created_at, id); GRANT SELECT ON public.bookings TO relay; \
             CREATE TABLE app.copy (id bigint PRIMARY KEY, created_at timestamptz, {definitions}); \
             GRANT INSERT ON app.copy TO relay"
        ))
        .await
        .unwrap();
    // Row 0 is all NULL; row n has the value number n of each type, or its last.
    owner.batch_execute("INSERT INTO public.bookings DEFAULT VALUES").await.unwrap();
    for row in 0..columns.iter().map(|(_, values)| values.len()).max().unwrap() {
        let values: Vec<&str> = columns.iter().map(|(_, values)| values[row.min(values.len() - 1)]).collect();
        let insert = format!("INSERT INTO public.bookings ({}) VALUES ({})", names.join(", "), values.join(", "));
        owner.batch_execute(&insert).await.unwrap();
    }
    // By subscript: unnest would take a composite value apart.
    let values = (1..=columns.len() + 2).map(|n| if each == "batch" { format!("(${n})[i]") } else { format!("${n}") });
    let from = if each == "batch" { " FROM generate_subscripts($1, 1) AS i" } else { "" };
    let statement = format!("INSERT INTO app.copy SELECT {}{from}", values.collect::<Vec<_>>().join(", "));
    let parameters = ["id".to_owned(), "created_at".to_owned()].into_iter().chain(names);
    let parameters = parameters.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let relays = relay("copy", "", &statement, &parameters, &format!("each = \"{each}\""));
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    // As text: what looks the same is the same, also where a type has no equality.
    let same = "SELECT (SELECT string_agg(b::text, '|' ORDER BY id) FROM public.bookings AS b) \
                IS NOT DISTINCT FROM (SELECT string_agg(c::text, '|' ORDER BY id) FROM app.copy AS c)";
    let error = "SELECT last_error->>'message' FROM outbox.cursor_status WHERE last_error IS NOT NULL";
    let mut failed = None;
    eventually(PATIENCE * 2, async || {
        failed = owner.query_opt(error, &[]).await.unwrap().map(|row| row.get::<_, Option<String>>(0));
        failed.is_some() || owner.query_one(same, &[]).await.unwrap().get(0)
    })
    .await;
    assert_eq!(failed, None);
    replica.stop().await;
}

// Guarantee: read-models.types
#[tokio::test(flavor = "multi_thread")]
async fn values_of_every_type_reach_the_statement_as_they_are() {
    come_back("row", &[VALUES, ARRAYS].concat()).await;
}

// Guarantee: read-models.types
#[tokio::test(flavor = "multi_thread")]
async fn values_of_every_type_but_arrays_reach_the_statement_in_arrays() {
    come_back("batch", VALUES).await;
}
