//! Strict templates over a row's columns.
/// (being built)
#[derive(Debug)]
pub struct Template {}
/// (being built)
#[derive(Debug, thiserror::Error)]
#[error("template")]
pub struct TemplateError;
impl Template {
    /// Compiles.
    pub fn compile(_key: &str, _text: &str) -> Result<Self, TemplateError> {
        Err(TemplateError)
    }
    /// Columns.
    pub fn columns(&self) -> &[String] {
        &[]
    }
    /// Renders.
    pub fn render<'a>(
        &self,
        _values: impl IntoIterator<Item = (&'a str, Option<&'a [u8]>)>,
    ) -> Result<String, TemplateError> {
        Err(TemplateError)
    }
}
