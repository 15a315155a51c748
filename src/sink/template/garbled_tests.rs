//! Templates and values that are almost right.

use super::*;
use crate::garbled::Garbled;

#[test]
fn garbled_templates_and_values_end_in_text_or_errors() {
    // With the stack of a worker thread.
    let work = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let (mut printed, mut refused) = (0, 0);
        for bytes in Garbled::new("template") {
            let text = String::from_utf8_lossy(&bytes);
            // The value is the last line.
            let (source, value) = text.rsplit_once('\n').unwrap_or((&text, "1"));
            for mode in [Mode::Text, Mode::Url] {
                let Ok(template) = Template::compile("key", source, mode) else {
                    refused += 1;
                    continue;
                };
                for value in [TemplateValue::Text(value.as_bytes()), TemplateValue::Json(value.as_bytes())] {
                    match template.render(|_| Some(value)) {
                        Ok(text) => {
                            printed += 1;
                            assert!(text.len() <= mode.limit(), "{} bytes", text.len());
                        }
                        Err(error) => assert!(!error.to_string().is_empty()),
                    }
                }
            }
        }
        assert!(printed > 0 && refused > 0, "{printed} printed, {refused} refused");
    });
    work.expect("starts").join().expect("passes");
}
