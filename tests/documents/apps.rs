//! The applications in docs/howto/outbox.md are those that `make test-apps` runs.

use crate::read;

const PRINTED: [(&str, &str); 4] = [
    ("python", "sqlalchemy/booking.py"),
    ("typescript", "node/booking.ts"),
    ("java", "spring/src/main/java/bookings/Outbox.java"),
    ("java", "spring/src/main/java/bookings/Bookings.java"),
];

#[test]
fn outbox_guide_prints_tested_applications() {
    let page = read("docs/howto/outbox.md");
    for (language, file) in PRINTED {
        let block = format!("\n```{language}\n{}```\n", read(format!("tests/apps/{file}")));
        assert!(page.contains(&block), "docs/howto/outbox.md does not print tests/apps/{file} as it is");
    }
}
