//! Columns of every type worth having, with values that are easily written in another way.

use tokio_postgres::Client;

/// A column's name, its type, and values as SQL; the rows take them in turn.
pub(super) type Column = (&'static str, &'static str, &'static [&'static str]);

pub(super) const TYPES: &str = r#"
    CREATE TYPE public.mood AS ENUM ('fine', 'so "so", \ and on', 'NULL', ' ');
    CREATE TYPE public.spoken AS ENUM ('yes', 'no');
    CREATE FUNCTION public.spoken_to_json(public.spoken) RETURNS json LANGUAGE sql IMMUTABLE
        AS $$ SELECT json_build_object('said', $1::text) $$;
    CREATE CAST (public.spoken AS json) WITH FUNCTION public.spoken_to_json(public.spoken);
    CREATE DOMAIN public.positive AS integer CHECK (VALUE > 0);
    CREATE DOMAIN public.paper AS json;
    CREATE DOMAIN public.tags AS text[];
    CREATE TYPE public.pair AS (a integer, "b "" \" text, at timestamptz, doc json, list numeric[]);
    CREATE TYPE public.nested AS (one public.pair, many public.pair[], mood public.mood);
    CREATE TYPE public.floats AS RANGE (subtype = float8);
"#;

pub(super) const COLUMNS: &[Column] = &[
    ("bool", "boolean", &["true", "false"]),
    ("int2", "smallint", &["-32768", "32767", "0"]),
    ("int4", "integer", &["-2147483648", "2147483647"]),
    ("int8", "bigint", &["-9223372036854775808", "9223372036854775807", "9007199254740993"]),
    (
        "numeric",
        "numeric",
        &[
            "'NaN'",
            "'0.00'",
            "'-123456789012345678901234567890.123456789012345678901234567890'",
            "('1' || repeat('0', 5000))::numeric",
            "('0.' || repeat('3', 5000))::numeric",
            "'1e-300'",
        ],
    ),
    ("scaled", "numeric(20, 5)", &["1", "'-0.00001'", "'NaN'"]),
    (
        "float4",
        "real",
        &["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "'1e-45'", "'3.4028235e38'", "'0.1'", "16777216", "1e15"],
    ),
    (
        "float8",
        "double precision",
        &[
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "'-0'",
            "'5e-324'",
            "'1.7976931348623157e308'",
            "'0.1'",
            "1e15",
            "1e23",
        ],
    ),
    ("money", "money", &["'-1234567.89'", "'0'"]),
    (
        "text",
        "text",
        &[
            "''",
            r#"'"quoted" \back\ /slash/ ''one'''"#,
            r"E'\x01\x02\b\t\n\x0b\f\r\x1b\x1f\x7f'",
            r"U&'\2028 \2029 \FEFF \00A0 \0085 \FFFD \+01F980 \+10FFFF'",
            "'</script><!-- &amp; -->'",
            "repeat('long ', 50000)",
            r"E'\\u0000 is written, not meant'",
        ],
    ),
    ("varchar", "varchar(10)", &["' x '", "'zehn: 10 ü'"]),
    ("char", "char(5)", &["'ab'", "''"]),
    ("one", "\"char\"", &["'x'", "''", "'\"'", r"'\'"]),
    ("name", "name", &["'Odd \"Name\"'"]),
    ("bytea", "bytea", &[r"'\x00ff5c2200'", "''"]),
    ("uuid", "uuid", &["'01890a5d-ac96-774b-bcce-b302099a8057'", "'00000000000000000000000000000000'"]),
    ("date", "date", &["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'2026-02-28'", "'12345-01-02'"]),
    ("time", "time", &["'24:00:00'", "'00:00:00.000001'", "'12:30'"]),
    ("timetz", "timetz", &["'08:00:00-08'", "'23:59:59.999999+15:59:59'", "'24:00:00+00'"]),
    (
        "timestamp",
        "timestamp",
        &[
            "'infinity'",
            "'-infinity'",
            "'4713-01-01 00:00:00 BC'",
            "'294276-12-31 23:59:59.999999'",
            "'2026-03-29 02:30'",
        ],
    ),
    (
        "timestamptz",
        "timestamptz",
        &["'infinity'", "'-infinity'", "'0044-03-15 12:00:00.5+05:45 BC'", "'2026-11-21 08:00:00.123456+05:30'"],
    ),
    ("timestamptz0", "timestamptz(0)", &["'2026-11-21 23:59:59.9Z'"]),
    (
        "interval",
        "interval",
        &["'-1 year +2 days -03:04:05.678'", "'0'", "'178000000 years'", "'1 mon -1 day 00:00:00.000001'"],
    ),
    ("inet", "inet", &["'10.1.2.3'", "'10.1.2.3/8'", "'::1/64'", "'::ffff:1.2.3.4'"]),
    ("cidr", "cidr", &["'10.0.0.0/8'", "'2001:db8::/32'"]),
    ("macaddr", "macaddr", &["'08:00:2b:01:02:03'"]),
    ("macaddr8", "macaddr8", &["'08002b:0102030405'"]),
    (
        "json",
        "json",
        &[
            "'{\"b\" : 1,  \"a\":\t[1.0, 1e2,\n -0, 12345678901234567890.10 ], \"b\":2}'",
            "' \"\\u2028\\ud83e\\udd80 \\/ \\u0000\" '",
            "'null'",
            "'  [ ]  '",
        ],
    ),
    (
        "jsonb",
        "jsonb",
        &["'{\"b\" : 1,  \"a\":[1.0, 1e2,\n -0, 1e-7], \"b\":2}'", "'\"\\u2028 \\/ \\u0001\"'", "'null'", "'{}'"],
    ),
    ("jsonpath", "jsonpath", &["'$.a[*] ? (@ > 1)'"]),
    ("xml", "xml", &["'<a b=\"c\"> &amp; </a>'"]),
    ("ints", "integer[]", &["'{}'", "'{{1,NULL},{3,4}}'", "'[3:5]={1,2,3}'", "'[0:0][-1:0]={{7,8}}'"]),
    ("texts", "text[]", &["'{a,NULL,\"NULL\",\"\",\"{,}\",\"\\\\\"}'", "'{}'", r#"ARRAY[E'\t', '"']"#]),
    ("floats", "double precision[]", &["'{NaN,Infinity,-0,0.1,NULL}'"]),
    ("times", "timestamptz[]", &["'{infinity,NULL,\"2026-11-21 08:00:00.123456+05:30\"}'"]),
    ("jsons", "json[]", &["ARRAY['{\"a\" : [1,  2]}', NULL, ' null ']::json[]"]),
    ("jsonbs", "jsonb[]", &["ARRAY['{\"a\" : [1,  2]}', NULL, 'null']::jsonb[]"]),
    ("byteas", "bytea[]", &[r"ARRAY['\x00ff', '', NULL]::bytea[]"]),
    ("int4range", "int4range", &["'[1,5)'", "'empty'", "'(,)'"]),
    ("numrange", "numrange", &["'[1.10,2.000)'", "'(,NaN]'"]),
    ("tstzrange", "tstzrange", &["'[2026-11-21 08:00:00+05:30,infinity)'", "'(-infinity,)'"]),
    ("daterange", "daterange", &["'[2026-01-01,2026-12-31]'"]),
    ("floatrange", "public.floats", &["'[0.1,Infinity]'"]),
    ("ranges", "int8range[]", &["ARRAY['[1,2)', NULL, 'empty']::int8range[]"]),
    ("mood", "public.mood", &["'so \"so\", \\ and on'", "'NULL'", "' '"]),
    ("moods", "public.mood[]", &["ARRAY['fine', NULL, 'so \"so\", \\ and on']::public.mood[]"]),
    ("spoken", "public.spoken", &["'yes'", "'no'"]),
    ("spokens", "public.spoken[]", &["ARRAY['yes', NULL]::public.spoken[]"]),
    ("positive", "public.positive", &["7"]),
    ("paper", "public.paper", &["'{\"a\" :  1}'"]),
    ("tags", "public.tags", &["'{a,\"b c\"}'"]),
    (
        "pair",
        "public.pair",
        &[
            "ROW(1, 'a \"b\", c', '2026-11-21 08:00:00+05:30', '{\"x\" :  1}', '{1.10,NaN,NULL}')",
            "ROW(NULL, NULL, NULL, NULL, NULL)",
        ],
    ),
    (
        "nested",
        "public.nested",
        &[
            "ROW(ROW(1, E'\\n', 'infinity', '[ ]', '{}'), ARRAY[ROW(2, '', NULL, 'null', NULL), NULL]::public.pair[], 'NULL')",
        ],
    ),
    ("bit", "bit(4)", &["B'0101'"]),
    ("varbit", "bit varying", &["B''", "B'010101010101'"]),
    ("point", "point", &["'(1,-2.5)'", "'(NaN,Infinity)'", "'(1e-300,-0)'"]),
    ("line", "line", &["'{1,-1,0.1}'"]),
    ("lseg", "lseg", &["'[(1,2),(3,4)]'"]),
    ("box", "box", &["'(3,4),(1,2)'"]),
    ("boxes", "box[]", &["ARRAY['(3,4),(1,2)', '(1,1),(0,0)']::box[]"]),
    ("path", "path", &["'[(1,2),(3,4)]'", "'((1,2),(3,4))'"]),
    ("polygon", "polygon", &["'((0,0),(1,1),(1,0))'"]),
    ("circle", "circle", &["'<(1,2),0.1>'"]),
    ("tsvector", "tsvector", &["'a:1 b:2A ''it''''s'':3'"]),
    ("tsquery", "tsquery", &["'a & !b <-> ''c d'''"]),
    ("oid", "oid", &["4294967295"]),
    ("regclass", "regclass", &["'public.odd'", "'pg_class'"]),
    ("regtype", "regtype", &["'public.mood'", "'integer[]'"]),
    ("regprocedure", "regprocedure", &["'public.spoken_to_json(public.spoken)'"]),
    ("pg_lsn", "pg_lsn", &["'16/B374D848'"]),
    ("xid8", "xid8", &["'18446744073709551615'"]),
    ("snapshot", "pg_snapshot", &["'10:20:10,14,15'"]),
    ("tid", "tid", &["'(42,7)'"]),
    ("generated", "text GENERATED ALWAYS AS ('by the server') STORED", &["DEFAULT"]),
    ("Größe \"in\" \\ \u{2028}\u{1f980}\t", "text", &["'a name to be escaped'"]),
];

/// Those that only some servers have.
pub(super) async fn of_this_server(owner: &Client) -> Vec<Column> {
    let mut more: Vec<Column> = Vec::new();
    let facts = "SELECT current_setting('server_version_num')::integer >= 140000, \
                 EXISTS (SELECT FROM pg_available_extensions WHERE name = 'hstore')";
    let facts = owner.query_one(facts, &[]).await.unwrap();
    if facts.get(0) {
        more.push(("multirange", "int4multirange", &["'{[1,2),[5,9]}'", "'{}'"]));
        more.push(("tstzmultirange", "tstzmultirange", &["'{(,2026-11-21 08:00:00+05:30),[infinity,)}'"]));
        more.push(("endless", "numeric", &["'Infinity'", "'-Infinity'"]));
    }
    if facts.get(1) {
        owner.batch_execute("CREATE EXTENSION hstore WITH SCHEMA public").await.unwrap();
        more.push(("hstore", "public.hstore", &[r#"'a=>1, "b \"c"=>NULL, d=>"\\t"'"#]));
    }
    more
}
