//! Rows that are still to come late are told apart from those that were never sent, whatever the sink.

use serde_json::json;

use super::super::{SWEPT, differences, drain, verify};
use super::{KEEP, Sent};

// Guarantee: verify.late-to-come
#[tokio::test(flavor = "multi_thread")]
async fn late_rows_that_no_turn_has_found_yet_are_still_to_come() {
    let sent = Sent::new(5, SWEPT, "", KEEP).await;
    let late = sent.insert_late().await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, differences(&document)), (Some(0), vec![]), "{document}{log}");
    assert_eq!(document["explained"], json!({ "late_to_come": 1 }));
    assert_eq!(document["late_to_come"][0]["id"], late.as_str());
    assert_eq!(document["rows"], json!({ "table": 6, "delivered": 5, "topic": null }));
    assert!(document["notes"].to_string().contains("cursor resume hooks"), "{document}");
    // More than the sums can name, of more transactions than they can tell.
    let many = "INSERT INTO bookings (created_at) SELECT b.created_at - make_interval(secs => n / 1e6) \
                FROM bookings AS b, generate_series(2, 41) AS n WHERE b.id = 2";
    for _ in 0..3 {
        sent.owner.batch_execute(many).await.unwrap();
    }
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["explained"]), (Some(0), &json!({ "late_to_come": 121 })), "{document}{log}");
    assert_eq!(document["rows"], json!({ "table": 126, "delivered": 5, "topic": null }));
    assert_eq!(document["late_to_come"].as_array().map(Vec::len), Some(100), "--limit");
    drain(&sent.text).await;
    assert_eq!(sent.hook.accepted().len(), 126);
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["explained"]), (Some(0), &json!({})), "{document}{log}");
    assert_eq!(document["rows"], json!({ "table": 126, "delivered": 126, "topic": null }));
}

// Guarantee: verify.late-to-come
#[tokio::test(flavor = "multi_thread")]
async fn late_row_of_a_shard_is_still_to_come_by_its_own_cursor() {
    let index = format!(
        "{SWEPT}; CREATE INDEX ON bookings (((COALESCE(hashtextextended(customer::text COLLATE \"C\", 0), 0) & 2147483647) % 2), \
         created_at, id)"
    );
    let sent = Sent::new(12, &index, "shards = 2\nshard_key = \"customer\"", KEEP).await;
    sent.insert_late().await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["explained"]), (Some(0), &json!({ "late_to_come": 1 })), "{document}{log}");
    assert_eq!(document["rows"], json!({ "table": 13, "delivered": 12, "topic": null }));
    drain(&sent.text).await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &13.into()), "{document}{log}");
    assert_eq!(sent.hook.accepted().len(), 13);
}
