//! The place of a span in its trace, as other programs write it down: the text `traceparent` of W3C Trace Context.

/// A span of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace_id: u128,
    /// The span.
    pub span_id: u64,
    /// Its flags; the lowest says whether it is exported.
    pub flags: u8,
}

impl SpanContext {
    /// Reads `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`. Of a later version it reads what this one knows, as the
    /// specification asks; none for what is no trace context.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (head, rest) = text.split_at_checked(55)?;
        let [version, trace_id, span_id, flags] = [&head[..2], &head[3..35], &head[36..52], &head[53..]].map(number);
        let version = version.filter(|version| *version != 0xff)?;
        let ends = rest.is_empty() || version > 0 && rest[0] == b'-';
        if !ends || [head[2], head[35], head[52]] != [b'-'; 3] {
            return None;
        }
        let trace_id = trace_id.filter(|id| *id != 0)?;
        let span_id = u64::try_from(span_id?).ok().filter(|id| *id != 0)?;
        Some(Self { trace_id, span_id, flags: u8::try_from(flags?).ok()? })
    }

    /// Whether its trace is exported.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

/// Of hexadecimal digits, of which only the small ones are allowed.
fn number(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

/// The id of a new trace.
#[must_use]
pub fn new_trace_id() -> u128 {
    fastrand::u128(1..)
}

/// The id of a new span.
#[must_use]
pub fn new_span_id() -> u64 {
    fastrand::u64(1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn traceparent_is_read_as_its_specification_says() {
        let context = SpanContext::parse(TRACEPARENT.as_bytes()).expect("valid");
        assert_eq!(context.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((context.span_id, context.flags, context.is_sampled()), (0xb7ad_6b71_6920_3331, 1, true));
        let with = |from: &str, to: &str| SpanContext::parse(TRACEPARENT.replace(from, to).as_bytes());
        assert!(!with("-01", "-00").expect("valid").is_sampled());
        assert!(with("-01", "-03").expect("valid").is_sampled());
        assert_eq!(with("00-", "cc-"), Some(context), "a later version");
        assert_eq!(with("-01", "-01-what-comes"), None, "this version ends there");
        let later = TRACEPARENT.replace("00-", "01-");
        assert_eq!(SpanContext::parse(format!("{later}-what-comes").as_bytes()), Some(context));
        assert_eq!(SpanContext::parse(format!("{later}.what-comes").as_bytes()), None);
    }

    #[test]
    fn what_is_no_trace_context_is_none() {
        for text in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
            "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
            "000af7651916cd43dd8448eb211c80319cb7ad6b716920333101ééé",
        ] {
            assert_eq!(SpanContext::parse(text.as_bytes()), None, "{text}");
        }
    }
}
