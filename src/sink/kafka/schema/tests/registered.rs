//! Schemas of files, names of subjects, references, and what `check` asks.

use super::*;

#[tokio::test]
async fn schema_of_a_file_is_looked_up_or_registered_under_the_subject_of_each_strategy() {
    let folder = tempfile::tempdir().expect("made");
    let path = file(folder.path(), "b.avsc", V1);
    let server = Server::start().await;
    for (register, subject, path_of_question) in [
        (false, SubjectName::Topic, "POST /api/subjects/t-value"),
        (true, SubjectName::Topic, "POST /api/subjects/t-value/versions"),
        (true, SubjectName::Record, "POST /api/subjects/B/versions"),
        (false, SubjectName::TopicRecord, "POST /api/subjects/t-B"),
    ] {
        let of = SchemaFormat {
            subject,
            wanted: WantedSchema::File { path: path.clone(), register },
            ..format(registry(&server.url))
        };
        let failure = Stage::new(&of).prepare().await.expect_err("not there");
        assert_eq!(failure.code, "schema_missing");
        server.answer(path_of_question, 200, "{\"id\":9}");
        let stage = Stage::new(&of);
        stage.prepare().await.expect("given");
        assert_eq!(stage.encode("{\"id\":1}").expect("fits")[4], 9);
        let (question, _, body) = server.state().asked.last().cloned().expect("asked");
        assert_eq!((question.as_str(), body), (path_of_question, serde_json::json!({ "schema": V1 }).to_string()));
    }
    let missing = WantedSchema::File { path: folder.path().join("none"), register: true };
    let failure = Stage::new(&SchemaFormat { wanted: missing, ..format(registry(&server.url)) }).prepare().await;
    assert_eq!(failure.expect_err("no file").code, "schema_file_unreadable");
}

#[tokio::test]
async fn check_registers_nothing_and_says_what_would_be_refused() {
    let folder = tempfile::tempdir().expect("made");
    let wanted = WantedSchema::File { path: file(folder.path(), "b.avsc", V2), register: true };
    let server = Server::start().await;
    let of = SchemaFormat { wanted, ..format(registry(&server.url)) };
    let inspected = |topic| {
        let stage = Stage::new(&of);
        async move { stage.0.inspect(&stage.1, topic).await }
    };
    let facts = inspected(Some("t")).await.expect("a new subject").expect("of a topic");
    assert_eq!((facts.subject.as_str(), facts.id, facts.name.as_deref()), ("t-value", None, Some("B")));
    assert_eq!(facts.fields.map(|fields| fields.len()), Some(2));
    let compatibility = "POST /api/compatibility/subjects/t-value/versions/latest?verbose=true";
    server.answer("POST /api/subjects/t-value", 404, "{\"error_code\":40403,\"message\":\"Schema not found\"}");
    server.answer(
        compatibility,
        200,
        "{\"is_compatible\":false,\"messages\":[\"READER_FIELD_MISSING_DEFAULT_VALUE\"]}",
    );
    let failure = inspected(Some("t")).await.expect_err("incompatible");
    assert!(failure.code == "schema_refused" && failure.message.contains("READER_FIELD_MISSING"), "{failure:?}");
    server.answer(compatibility, 200, "{\"is_compatible\":true}");
    assert_eq!(inspected(Some("t")).await.expect("compatible").and_then(|facts| facts.id), None);
    server.answer("POST /api/subjects/t-value", 200, "{\"id\":4,\"version\":2,\"schema\":\"\"}");
    let facts = inspected(Some("t")).await.expect("registered").expect("of a topic");
    assert_eq!((facts.id, facts.version), (Some(4), Some(2)));
    assert_eq!(inspected(None).await.expect("it answers"), None);
    assert!(
        server.state().asked.iter().all(|(question, ..)| !question.ends_with("-value/versions")),
        "nothing is registered"
    );
    server.answer("GET /api/subjects/outbox-relay.check-value/versions/latest", 401, "");
    assert_eq!(inspected(None).await.expect_err("refused").code, "schema_registry_refused");
}

#[tokio::test]
async fn schemas_that_others_refer_to_are_fetched_once_each() {
    let server = Server::start().await;
    let main = r#"{"type":"record","name":"B","fields":[{"name":"p","type":"P"}]}"#;
    let place = r#"{"type":"record","name":"P","fields":[{"name":"s","type":"S"}]}"#;
    let shade = r#"{"type":"enum","name":"S","symbols":["D"]}"#;
    let reference = |name: &str| serde_json::json!({ "name": name, "subject": name, "version": 1 });
    let body = serde_json::json!({ "id": 1, "schema": main, "references": [reference("P"), reference("S")] });
    server.answer("GET /api/subjects/t-value/versions/latest", 200, &body.to_string());
    // One of them refers back.
    for (name, schema, to) in [("P", place, "S"), ("S", shade, "P")] {
        let body = serde_json::json!({ "id": 2, "schema": schema, "references": [reference(to)] });
        server.answer(&format!("GET /api/subjects/{name}/versions/1"), 200, &body.to_string());
    }
    let stage = Stage::new(&format(registry(&server.url)));
    stage.prepare().await.expect("given");
    assert_eq!(stage.encode("{\"p\":{\"s\":\"D\"}}").expect("fits"), [0, 0, 0, 0, 1, 0]);
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn record_of_another_name_is_not_written_to_its_subject() {
    let server = Server::start().await;
    server.latest("C", 1, V1);
    let of =
        SchemaFormat { subject: SubjectName::Record, record: Some("C".to_owned()), ..format(registry(&server.url)) };
    let failure = Stage::new(&of).prepare().await.expect_err("another one");
    assert!(
        failure.code == "schema_unusable" && failure.message.contains("it is of B, and the relay wants C"),
        "{failure:?}"
    );
    assert!(!of.depends_on_topic());
}
