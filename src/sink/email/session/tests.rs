use super::*;

#[test]
fn what_a_server_offers_is_read_from_its_lines() {
    let reply = |lines: &[&str]| Reply { code: 250, lines: lines.iter().map(|line| (*line).to_owned()).collect() };
    let all = offers(&reply(&["STARTTLS", "size 1000", "AUTH LOGIN plain CRAM-MD5", "StartTLS", "8BITMIME"]));
    assert_eq!(all, Offers { starttls: true, plain: true, login: true, size: true, limit: Some(1000) });
    assert_eq!(offers(&reply(&["AUTH PLAIN STARTTLS SIZE 1"])), Offers::default(), "the first line is a name");
    let old = offers(&reply(&["mail", "AUTH=LOGIN", "SIZE 0", ""]));
    assert_eq!(old, Offers { login: true, size: true, ..Offers::default() });
}

#[test]
fn no_line_of_the_content_is_taken_for_the_last() {
    let content = b".\r\n..\r\na.\r\n.b\r\n";
    // Wherever the content is cut into pieces.
    for size in 1..=content.len() {
        let mut at_begin = true;
        let pieces: Vec<u8> = content.chunks(size).flat_map(|piece| stuffed(piece, &mut at_begin)).collect();
        assert_eq!(pieces, b"..\r\n...\r\na.\r\n..b\r\n", "pieces of {size}");
    }
}

#[test]
fn file_of_a_password_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("made");
    let path = folder.path().join("smtp-password");
    let why = |secret: &Secret| match readable(secret) {
        Err(Trouble::Secret(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(why(&Secret::File(path.clone())).starts_with(&format!("{}: ", path.display())));
    std::fs::write(&path, "\n").expect("written");
    let said = format!("{}: it is empty or has a NUL character", path.display());
    assert_eq!(why(&Secret::File(path)), said);
}
