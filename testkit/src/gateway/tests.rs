//! The gateway answers as Twilio does, and misbehaves as told.

use super::*;

async fn send(gateway: &Gateway, to: &str, token: &str) -> reqwest::Result<(u16, serde_json::Value)> {
    let url = format!("{}/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json", gateway.base_url());
    let client = reqwest::Client::builder().timeout(Duration::from_millis(300)).build()?;
    let request = client.post(url).basic_auth(ACCOUNT_SID, Some(token)).header("Idempotency-Key", "sms/7");
    let answer = request.form(&[("To", to), ("From", "+15550000000"), ("Body", "Booking 7")]).send().await?;
    let status = answer.status().as_u16();
    Ok((status, serde_json::from_slice(&answer.bytes().await?).unwrap_or_default()))
}

#[tokio::test]
async fn accepts_records_and_refuses_like_the_provider() {
    let gateway = Gateway::start().await.expect("a gateway");
    let (status, answer) = send(&gateway, "+15551234567", AUTH_TOKEN).await.expect("an answer");
    assert_eq!((status, answer["sid"].as_str().map(str::len)), (201, Some(34)));
    let (status, answer) = send(&gateway, "nobody", AUTH_TOKEN).await.expect("an answer");
    assert_eq!((status, answer["code"].as_u64(), answer["status"].as_u64()), (400, Some(21211), Some(400)));
    assert_eq!(send(&gateway, "+15551234567", "wrong").await.expect("an answer").0, 401);
    let accepted = gateway.accepted();
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0].idempotency_key.as_deref(), Some("sms/7"));
    assert_eq!((accepted[0].to.as_str(), accepted[0].body.as_str()), ("+15551234567", "Booking 7"));
    assert_eq!(gateway.take(), accepted);
    assert!(gateway.accepted().is_empty(), "what was taken is forgotten");
}

#[tokio::test]
async fn misbehaves_as_told_and_records_what_it_accepted_all_the_same() {
    let mut gateway = Gateway::start().await.expect("a gateway");
    gateway.script(1, Behaviour::Refuse { status: 503, retry_after: Some(2) });
    gateway.script(1, Behaviour::AcceptThenClose);
    gateway.script(1, Behaviour::Hang);
    assert_eq!(send(&gateway, "+15551234567", AUTH_TOKEN).await.expect("an answer").0, 503);
    assert!(send(&gateway, "+15551234567", AUTH_TOKEN).await.is_err());
    assert_eq!(gateway.accepted_count(), 1);
    assert!(send(&gateway, "+15551234567", AUTH_TOKEN).await.expect_err("hangs").is_timeout());
    assert_eq!(gateway.accepted_count(), 1);
    gateway.down().await;
    assert!(send(&gateway, "+15551234567", AUTH_TOKEN).await.expect_err("is down").is_connect());
    gateway.up().await.expect("its port");
    assert_eq!(send(&gateway, "+15551234567", AUTH_TOKEN).await.expect("an answer").0, 201);
    assert_eq!(gateway.requests(), 4);
}
