//! The pages of docs/howto: what stands in them is run as it stands.

/// A page's text.
pub fn page(name: &str) -> String {
    std::fs::read_to_string(format!("docs/howto/{name}.md")).unwrap()
}

/// The blocks of this language.
pub fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}
