//! Values that hold no others.

use std::borrow::Cow;

use super::super::binary;
use super::super::json::{Json, Kind};
use super::super::misfit::Misfit;
use super::super::moment::{self, Moment, Unit};
use super::super::number::{self, Decimal, Excess};
use super::write::{Writer, length, long, wanted};
use super::{Node, UuidForm};

impl Writer<'_> {
    pub(super) fn scalar(self, node: &Node, json: Json<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match node {
            Node::Null if json.kind() == Kind::Null => {}
            Node::Null => return Err(wanted("null", json)),
            Node::Boolean => out.push(u8::from(json.boolean().ok_or_else(|| wanted("a boolean", json))?)),
            Node::Int => long(int(json)?.into(), out),
            Node::Long => long(whole(json, "a whole number of 64 bits")?, out),
            Node::Float => out.extend_from_slice(&float(json, "single", number::single)?.to_le_bytes()),
            Node::Double => out.extend_from_slice(&float(json, "double", number::double)?.to_le_bytes()),
            Node::Text => sized(text(json)?.as_bytes(), out),
            Node::Bytes => sized(&self.bytes(json)?, out),
            Node::Fixed(size) => out.extend_from_slice(&exactly(self.bytes(json)?, *size)?),
            Node::Enum(symbols) => {
                let symbol = json.text().ok_or_else(|| wanted("a text", json))?;
                let number = symbols.get(symbol.as_ref());
                long(*number.ok_or_else(|| Misfit::new("the text is none of the enum's symbols"))?, out);
            }
            Node::Decimal { precision, scale, size } => self.decimal((*precision, *scale), *size, json, out)?,
            Node::Uuid(form) => uuid(*form, json, out)?,
            Node::Date => long(date(json)?.into(), out),
            Node::Time(unit) => long(time(*unit, json)?, out),
            Node::Timestamp(unit) => long(timestamp(*unit, json)?, out),
            Node::LocalTimestamp(unit) => long(local_timestamp(*unit, json)?, out),
            Node::List(_) | Node::Map(_) | Node::Union(_) | Node::Record(_) => {}
        }
        Ok(())
    }

    fn bytes(self, json: Json<'_>) -> Result<Vec<u8>, Misfit> {
        let text = json.text().ok_or_else(|| wanted("a text", json))?;
        let bytes = if self.is_default { one_each(&text) } else { binary::bytes(&text) };
        bytes.ok_or_else(|| Misfit::new("bytes are needed: \\x and hexadecimal digits, or base64"))
    }

    fn decimal(
        self,
        (precision, scale): (usize, usize),
        size: Option<usize>,
        json: Json<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        let bytes = if self.is_default && json.kind() == Kind::Text {
            self.bytes(json)?
        } else {
            unscaled(json, precision, scale)?
        };
        let Some(size) = size else {
            sized(&bytes, out);
            return Ok(());
        };
        let missing = size.checked_sub(bytes.len());
        let missing =
            missing.ok_or_else(|| Misfit::new(format!("the number takes more than the {size} bytes of the schema")))?;
        if size > self.most {
            return Err(Misfit::Large(size));
        }
        let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
        out.extend(std::iter::repeat_n(sign, missing));
        out.extend_from_slice(&bytes);
        Ok(())
    }
}

/// A length and the bytes.
fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn exactly(bytes: Vec<u8>, size: usize) -> Result<Vec<u8>, Misfit> {
    if bytes.len() == size {
        return Ok(bytes);
    }
    Err(Misfit::new(format!("{size} bytes are needed, the row has {}", bytes.len())))
}

/// As the defaults of a schema have bytes.
fn one_each(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn int(json: Json<'_>) -> Result<i32, Misfit> {
    whole(json, "a whole number of 32 bits")
}

fn whole<T: TryFrom<i128>>(json: Json<'_>, what: &str) -> Result<T, Misfit> {
    let digits = json.number().ok_or_else(|| wanted(what, json))?;
    let number = number::whole(digits).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| Misfit::new(format!("the number is not {what}")))
}

fn float<T>(json: Json<'_>, precision: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Misfit> {
    let text = match json.kind() {
        Kind::Number => Cow::Borrowed(json.source()),
        // NaN and the infinities.
        Kind::Text => json.text().unwrap_or_default(),
        _ => return Err(wanted("a number", json)),
    };
    read(&text).ok_or_else(|| Misfit::new(format!("it is no number of {precision} precision")))
}

/// What is no text is written as the JSON that it is: a number with all its digits, a document.
fn text<'a>(json: Json<'a>) -> Result<Cow<'a, str>, Misfit> {
    match json.kind() {
        Kind::Null => Err(wanted("a text", json)),
        Kind::Text => json.text().ok_or_else(|| Misfit::new("the text is no Unicode")),
        Kind::Boolean | Kind::Number | Kind::List | Kind::Object => Ok(Cow::Borrowed(json.source())),
    }
}

fn unscaled(json: Json<'_>, precision: usize, scale: usize) -> Result<Vec<u8>, Misfit> {
    let digits = match json.kind() {
        Kind::Number => Cow::Borrowed(json.source()),
        Kind::Text => json.text().unwrap_or_default(),
        _ => return Err(wanted("a number", json)),
    };
    let number = Decimal::of(&digits).ok_or_else(|| Misfit::new("it is no decimal number"))?;
    number.unscaled(scale, precision).map_err(|excess| {
        Misfit::new(match excess {
            Excess::Scale(has) => {
                format!("the number has {has} digits behind the point, the schema's decimal has {scale}")
            }
            Excess::Precision(has) => {
                format!("the number has {has} digits at the scale of {scale}, the schema's decimal has {precision}")
            }
        })
    })
}

fn uuid(form: UuidForm, json: Json<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let text = json.text().ok_or_else(|| wanted("a text", json))?;
    let is_fit = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let is_uuid = text.len() == 36 && text.bytes().enumerate().all(is_fit);
    let digits = is_uuid.then(|| binary::bytes(&format!("\\x{}", text.replace('-', "")))).flatten();
    let bytes = digits.ok_or_else(|| Misfit::new("the text is no UUID"))?;
    match form {
        UuidForm::Text => sized(text.as_bytes(), out),
        UuidForm::Bytes => sized(&bytes, out),
        UuidForm::Fixed => out.extend_from_slice(&bytes),
    }
    Ok(())
}

/// From a text that `read` reads; a number is taken as it is.
fn from_text<T: TryFrom<i128>>(json: Json<'_>, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Misfit> {
    match json.kind() {
        Kind::Number => whole(json, "a whole number of the type's range"),
        Kind::Text => {
            json.text().and_then(|text| read(&text)).ok_or_else(|| Misfit::new(format!("the text is no {what}")))
        }
        _ => Err(wanted(&format!("a {what}"), json)),
    }
}

fn date(json: Json<'_>) -> Result<i32, Misfit> {
    from_text(json, "date of the years 1 to 9999", moment::date)
}

fn time(unit: Unit, json: Json<'_>) -> Result<i64, Misfit> {
    let time: i64 = from_text(json, "time of the day without a zone", |text| {
        moment::time(text).map(|nanos| moment::time_in(nanos, unit))
    })?;
    let day = moment::time_in(86_400 * moment::SECOND, unit);
    if (0..day).contains(&time) { Ok(time) } else { Err(Misfit::new("the number is no time of a day")) }
}

/// What has no zone is in UTC.
fn timestamp(unit: Unit, json: Json<'_>) -> Result<i64, Misfit> {
    from_text(json, "point of time of the years 1 to 9999, or beyond what 64 bits count", |text| {
        Moment::of(text)?.count(unit)
    })
}

fn local_timestamp(unit: Unit, json: Json<'_>) -> Result<i64, Misfit> {
    from_text(json, "date and time without a zone, of the years 1 to 9999", |text| {
        Moment::of(text).filter(|moment| !moment.has_zone)?.count(unit)
    })
}
