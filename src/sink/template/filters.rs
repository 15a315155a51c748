//! The filters that templates have, held to what a row may take.
//!
//! All that the library brings, but `pprint`, which indents a deep list without end, and in HTML `safe`.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::LazyLock;
use std::time::Duration;

use minijinja::value::{Rest, Value, ValueOrKwargs};
use minijinja::{Environment, Error, Expression, State, UndefinedBehavior, filters};

use super::work::{self, ELEMENTS, Exhausted};

/// In front of the library's own, which are called by ours.
const OWN: &str = "outbox_library_";

/// Adds them, with this limit of CPU time.
pub(super) fn add(environment: &mut Environment<'static>, limit: Duration) {
    macro_rules! add {
        ($($name:ident $filter:ident,)*) => {$(
            let own = concat!("outbox_library_", stringify!($name));
            debug_assert!(own.starts_with(OWN), "the names differ");
            environment.add_filter(own, filters::$filter);
            environment.add_filter(stringify!($name), move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
                call(state, own, &arguments.into_values(), limit)
            });
        )*};
    }
    add! {
        safe safe, escape escape, e escape, lower lower, upper upper, title title, capitalize capitalize, replace replace,
        length length, count length, dictsort dictsort, items items, reverse reverse, trim trim, join join, split split,
        lines lines, round round, abs abs, int int, float float, attr attr, first first, last last, min min, max max,
        sort sort, list list, string string, bool bool, batch batch, slice slice, sum sum, indent indent, select select,
        reject reject, selectattr selectattr, rejectattr rejectattr, map map, groupby groupby, unique unique, chain chain,
        zip zip, format format,
    }
    environment.remove_filter("pprint");
    environment.add_filter(super::marks::FILTER, move |state: &mut State<'_, '_>, value: Value| {
        work::goes_on(state, limit).map(|()| value)
    });
    environment.add_filter(super::marks::KEEPS, |state: &mut State<'_, '_>, value: Value, bytes: usize| {
        work::makes(state, bytes).map(|()| value)
    });
    for (operator, filter) in super::operators::FILTERS {
        environment.add_filter(filter, move |state: &mut State<'_, '_>, left: Value, right: Value| {
            work::goes_on(state, limit)?;
            operated(state, operator, left, right)
        });
    }
    environment.add_test("in", move |state: &mut State<'_, '_>, value: Value, list: Value| {
        work::goes_on(state, limit)?;
        minijinja::tests::is_in(state, &value, &list)
    });
}

fn call(state: &mut State<'_, '_>, own: &str, arguments: &[Value], limit: Duration) -> Result<Value, Error> {
    work::goes_on(state, limit)?;
    if arguments.iter().any(|value| value.as_str().is_none() && value.len().is_some_and(|elements| elements > ELEMENTS))
    {
        return Err(Exhausted::Memory.into());
    }
    work::makes(state, made(&own[OWN.len()..], arguments))?;
    state.apply_filter(own, arguments)
}

/// The operators of the library, which only an expression of its own can reach.
static OPERATORS: LazyLock<[(&str, Expression<'static, 'static>); 3]> = LazyLock::new(|| {
    static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment
    });
    [("*", "left * right"), ("~", "left ~ right"), ("+", "left + right")].map(|(operator, source)| {
        (operator, ENVIRONMENT.compile_expression(source).expect("an expression of two names and an operator"))
    })
});

/// Counts what is printed, up to the most that may be made.
#[derive(Default)]
struct Printed(usize);

impl fmt::Write for Printed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len());
        if self.0 > work::MADE { Err(fmt::Error) } else { Ok(()) }
    }
}

fn operated(state: &mut State<'_, '_>, operator: &str, left: Value, right: Value) -> Result<Value, Error> {
    let size = |value: &Value| {
        let elements = || value.as_object().and_then(|_| value.len()).unwrap_or(0).saturating_mul(size_of::<Value>());
        value.as_str().map_or_else(elements, str::len)
    };
    let times = |value: &Value| value.as_usize().unwrap_or(0);
    let made = match operator {
        "*" => size(&left).saturating_mul(times(&right)).max(size(&right).saturating_mul(times(&left))),
        // Lists are printed, whatever they hold.
        "~" => {
            let mut printed = Printed::default();
            let _ = write!(printed, "{left}{right}");
            printed.0
        }
        _ => size(&left).saturating_add(size(&right)),
    };
    work::makes(state, made)?;
    let expression = OPERATORS.iter().find(|(of, _)| *of == operator).map(|(_, expression)| expression);
    let result = expression.expect("one for each operator").eval(minijinja::context! { left, right });
    // Without the line of that expression: the library adds that of the template.
    result.map_err(|error| Error::new(error.kind(), error.detail().unwrap_or_default().to_owned()))
}

/// How many bytes a filter makes of a few: of a number, or of one value for each part of another one.
fn made(filter: &str, arguments: &[Value]) -> usize {
    let text = |at: usize| arguments.get(at).and_then(Value::as_str);
    let number = |at: usize| arguments.get(at).and_then(Value::as_usize).unwrap_or(0);
    let named = |name: &str| {
        arguments.iter().skip(1).find_map(|value| value.get_attr(name).ok().filter(|value| !value.is_undefined()))
    };
    match filter {
        "replace" => {
            let (Some(value), Some(from)) = (arguments.first(), text(1)) else { return 0 };
            // A number is replaced in as its text is.
            let value = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
            value.matches(from).count().saturating_mul(text(2).map_or(0, str::len)).saturating_add(value.len())
        }
        "join" => {
            let joiner = text(1).map(str::len).or_else(|| named("d")?.as_str().map(str::len)).unwrap_or(0);
            arguments.first().and_then(Value::len).unwrap_or(0).saturating_mul(joiner)
        }
        "indent" => {
            let width = named("width").and_then(|width| width.as_usize()).unwrap_or(number(1));
            text(0).map_or(1, |value| value.matches('\n').count() + 1).saturating_mul(width)
        }
        "batch" | "slice" => number(1).saturating_mul(size_of::<Value>()),
        "format" => {
            let widths =
                text(0).unwrap_or_default().split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
            let written = widths.map(|digits| digits.parse().unwrap_or(usize::MAX)).fold(0, usize::saturating_add);
            let given = (1..arguments.len()).map(number).fold(0, usize::saturating_add);
            if text(0).is_some_and(|format| format.contains('*')) { written.saturating_add(given) } else { written }
        }
        _ => 0,
    }
}
