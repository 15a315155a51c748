//! Rows drawn at random, as SQL.

use std::fmt::Display;

use fastrand::Rng;

/// Characters that JSON, SQL or JavaScript think something of.
const NASTY: [char; 16] =
    ['"', '\\', '/', '\'', '\u{7f}', '\u{85}', '\u{2028}', '\u{2029}', '\u{feff}', '{', '}', '[', ']', ',', ':', '🦀'];

/// See the module.
pub(super) struct Values {
    random: Rng,
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Values {
    /// What a row has beside its id and its time.
    pub(super) const COLUMNS: &[(&str, &str)] = &[
        ("bool", "boolean"),
        ("int2", "smallint"),
        ("int4", "integer"),
        ("int8", "bigint"),
        ("numeric", "numeric"),
        ("float4", "real"),
        ("float8", "double precision"),
        ("text", "text"),
        ("bytea", "bytea"),
        ("uuid", "uuid"),
        ("date", "date"),
        ("time", "time"),
        ("timetz", "timetz"),
        ("timestamp", "timestamp"),
        ("timestamptz", "timestamptz"),
        ("interval", "interval"),
        ("inet", "inet"),
        ("json", "json"),
        ("jsonb", "jsonb"),
        ("bits", "bit varying"),
        ("int8range", "int8range"),
        ("point", "point"),
        ("texts", "text[]"),
        ("floats", "real[]"),
        ("matrix", "bigint[]"),
        ("mood", "public.mood"),
        ("pair", "public.pair"),
    ];

    pub(super) fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed) }
    }

    /// A value for each of the columns.
    pub(super) fn row(&mut self) -> Vec<String> {
        Self::COLUMNS.iter().map(|(name, _)| self.or_null(|values| values.of(name))).collect()
    }

    fn or_null(&mut self, value: impl FnOnce(&mut Self) -> String) -> String {
        if self.random.u8(..8) == 0 { "NULL".to_owned() } else { value(self) }
    }

    fn of(&mut self, column: &str) -> String {
        match column {
            "bool" => self.random.bool().to_string(),
            "int2" => self.random.i16(..).to_string(),
            "int4" => self.random.i32(..).to_string(),
            "int8" => self.random.i64(..).to_string(),
            "numeric" => self.numeric(),
            "float4" => quote(&self.float4()),
            "float8" => quote(&format!("{:e}", f64::from_bits(self.random.u64(..)))),
            "text" => quote(&self.text()),
            "bytea" => format!("decode('{}', 'hex')", self.hex(20)),
            "uuid" => format!("'{:032x}'", self.random.u128(..)),
            "date" => format!("date '2000-01-01' + {}", self.random.i32(-2_400_000..2_000_000)),
            "time" => format!("time '00:00' + {}", self.micros(86_400_000_000)),
            "timetz" => {
                let (hour, offset) = (self.random.u8(..24), self.random.i8(-15..=15));
                format!("'{hour:02}:00:00.{:06}{offset:+03}:30'", self.random.u32(..1_000_000))
            }
            "timestamp" => format!("timestamp '2000-01-01' + {}", self.micros(200_000_000_000_000_000)),
            "timestamptz" => format!("timestamptz '2000-01-01 00:00Z' + {}", self.micros(200_000_000_000_000_000)),
            "interval" => self.interval(),
            "inet" => self.inet(),
            "json" | "jsonb" => quote(&self.json(3)),
            "bits" => format!("B'{:b}'", self.random.u32(..)),
            "int8range" => self.range(),
            "point" => format!("point({}, {})", self.random.f64(), self.random.i32(..)),
            "texts" => format!("{}::text[]", self.array(|values| quote(&values.text()))),
            "floats" => format!("{}::real[]", self.array(|values| quote(&values.float4()))),
            "matrix" => {
                let width = self.random.usize(1..4);
                let rows = self.random.usize(1..4);
                let rows: Vec<_> = (0..rows).map(|_| self.list(width, |values| values.random.i64(..))).collect();
                format!("ARRAY[{}]::bigint[]", rows.iter().map(|row| format!("[{row}]")).collect::<Vec<_>>().join(","))
            }
            "mood" => format!("(enum_range(NULL::public.mood))[{}]", self.random.u8(1..=4)),
            "pair" => {
                let (text, json) = (quote(&self.text()), quote(&self.json(2)));
                let list = self.array(Self::numeric);
                format!("ROW({}, {text}, now(), {json}, {list}::numeric[])::public.pair", self.random.i32(..))
            }
            _ => unreachable!("{column}"),
        }
    }

    fn digits(&mut self, most: usize) -> String {
        (0..self.random.usize(1..=most)).map(|_| self.random.digit(10)).collect()
    }

    fn hex(&mut self, most: usize) -> String {
        (0..2 * self.random.usize(..=most)).map(|_| self.random.digit(16)).collect()
    }

    fn numeric(&mut self) -> String {
        let sign = if self.random.bool() { "-" } else { "" };
        match self.random.u8(..3) {
            0 => format!("{sign}{}", self.digits(60)),
            1 => format!("{sign}{}.{}", self.digits(60), self.digits(60)),
            _ => format!("{sign}{}e{}", self.digits(5), self.random.i32(-200..200)),
        }
    }

    fn float4(&mut self) -> String {
        format!("{:e}", f32::from_bits(self.random.u32(..)))
    }

    fn micros(&mut self, range: i64) -> String {
        let from = if range > 86_400_000_000 { -range } else { 0 };
        format!("{} * interval '1 microsecond'", self.random.i64(from..range))
    }

    fn interval(&mut self) -> String {
        let (months, days) = (self.random.i32(-5_000..5_000), self.random.i32(-5_000..5_000));
        format!("make_interval(months => {months}, days => {days}) + {}", self.micros(1_000_000_000_000))
    }

    fn inet(&mut self) -> String {
        if self.random.bool() {
            let address = std::net::Ipv4Addr::from_bits(self.random.u32(..));
            format!("'{address}/{}'", self.random.u8(..=32))
        } else {
            let address = std::net::Ipv6Addr::from_bits(self.random.u128(..));
            format!("'{address}/{}'", self.random.u8(..=128))
        }
    }

    fn range(&mut self) -> String {
        let (one, other) = (self.random.i64(..i64::MAX), self.random.i64(..i64::MAX));
        let bounds = self.random.choice(["[]", "[)", "(]", "()"]).unwrap();
        format!("int8range({}, {}, '{bounds}')", one.min(other), one.max(other))
    }

    fn list<T: Display>(&mut self, length: usize, mut one: impl FnMut(&mut Self) -> T) -> String {
        (0..length).map(|_| self.or_null(|values| one(values).to_string())).collect::<Vec<_>>().join(",")
    }

    fn array(&mut self, one: impl FnMut(&mut Self) -> String) -> String {
        let length = self.random.usize(..6);
        format!("ARRAY[{}]", self.list(length, one))
    }

    fn character(&mut self) -> char {
        match self.random.u8(..6) {
            0 => char::from(self.random.u8(1..32)),
            1 => *self.random.choice(&NASTY).unwrap(),
            2 => self.random.char('\u{80}'..),
            _ => self.random.alphanumeric(),
        }
    }

    fn text(&mut self) -> String {
        (0..self.random.usize(..40)).map(|_| self.character()).collect()
    }

    fn space(&mut self) -> &'static str {
        self.random.choice(["", "", "", " ", "  ", "\n", "\t", "\r\n"]).unwrap()
    }

    fn json(&mut self, depth: usize) -> String {
        let (before, after) = (self.space(), self.space());
        let value = match self.random.u8(..if depth == 0 { 4 } else { 6 }) {
            0 => (*self.random.choice(&["null", "true", "false"]).unwrap()).to_owned(),
            1 => format!("{}.{}", self.random.i64(..), self.digits(20)),
            2 => format!("{}e{}", self.random.i32(..), self.random.i32(-50..50)),
            3 => self.string(),
            4 => {
                let items: Vec<_> = (0..self.random.usize(..4)).map(|_| self.json(depth - 1)).collect();
                format!("[{}{}]", self.space(), items.join(","))
            }
            _ => {
                let pairs: Vec<_> = (0..self.random.usize(..4))
                    .map(|_| format!("{}{}{}:{}", self.space(), self.string(), self.space(), self.json(depth - 1)))
                    .collect();
                format!("{{{}{}}}", self.space(), pairs.join(","))
            }
        };
        format!("{before}{value}{after}")
    }

    fn string(&mut self) -> String {
        serde_json::to_string(&self.text()).unwrap()
    }
}
