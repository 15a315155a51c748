//! The pages of docs/howto: what stands in them is run as it stands.

use std::sync::Mutex;

use outbox_testkit::postgres::{password, role_of, without_password};
use outbox_testkit::startup::private;

/// A page's text.
pub fn page(name: &str) -> String {
    std::fs::read_to_string(format!("docs/howto/{name}.md")).unwrap()
}

/// A page's configuration for this database: nothing else of `[postgres]` is another.
pub fn connected(toml: &str, url: &str) -> String {
    let role = role_of(url);
    let file = password_file(role);
    let without = without_password(url);
    let places = [
        ("\"postgresql://relay@127.0.0.1:5432/app?sslmode=verify-full\"", without),
        ("\"/run/secrets/postgres\"", file.display().to_string()),
    ];
    places.iter().fold(toml.to_owned(), |toml, (from, to)| {
        assert!(toml.contains(from), "{from} is not in {toml}");
        toml.replace(from, &format!("\"{to}\""))
    })
}

/// The file with a role's password, written once: relays of other tests read it at any moment, and another process of
/// tests has other passwords.
fn password_file(role: &str) -> std::path::PathBuf {
    static WRITTEN: Mutex<()> = Mutex::new(());
    let _one = WRITTEN.lock().unwrap();
    let name = format!("postgres-password-{role}-{}", std::process::id());
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    if found != password(role) {
        private(&file, &password(role)).unwrap();
    }
    file
}

/// The blocks of this language.
pub fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

/// The blocks of this language, without the indentation that a list gives them; none: plain blocks, that is commands.
pub fn flush_blocks(page: &str, language: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    blocks.map(|block| block.lines().map(|line| format!("{}\n", line.trim_start())).collect()).collect()
}

/// The commands of a page's plain blocks: what follows `outbox-relay`, word by word.
pub fn commands(page: &str) -> Vec<Vec<String>> {
    let lines = flush_blocks(page, "").join("");
    let commands = lines.lines().filter_map(|line| line.strip_prefix("outbox-relay "));
    commands.map(|command| command.split(' ').map(str::to_owned).collect()).collect()
}
