//! `preset = "debezium_outbox"` publishes what Debezium's outbox event router publishes with its defaults.

use outbox_testkit::postgres::password;

use crate::connect::Connect;
use crate::converted::{ROWS, TABLE, published};
use crate::support::{PATIENCE, Process, broker, eventually, unique};
use crate::{connector, logical};

// Guarantee: verify.converted
#[tokio::test(flavor = "multi_thread")]
async fn preset_publishes_the_records_that_debezium_publishes_by_its_defaults() {
    let database = logical().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(TABLE).await.unwrap();
    let kinds = ["order", "payment"].map(unique);
    let topics = kinds.clone().map(|kind| format!("outbox.event.{kind}"));
    for topic in &topics {
        broker().await.create_topic(topic, 5, &[]).await.unwrap();
    }
    let plain = "key.converter=org.apache.kafka.connect.storage.StringConverter\n\
                 value.converter=org.apache.kafka.connect.storage.StringConverter\n";
    let _debezium = Connect::start(&database, &connector(&database, plain).await).await;
    let toml = format!(
        "[postgres]\nurl = \"postgresql://postgres:{}@127.0.0.1:{}/{}?sslmode=disable\"\n[kafka]\nbootstrap_servers = \"{}\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"outbox\"\npreset = \"debezium_outbox\"\nstart = \"now\"\n\
         [relay.source.stream]\ntable = \"public.outboxevent\"\n",
        password("postgres"),
        database.postgres.port(),
        database.name,
        broker().await.bootstrap_servers()
    );
    let mut relay = Process::spawn(&toml, &["run"]);
    let begun = "SELECT count(*) = 1 FROM outbox.cursor WHERE position_created_at IS NOT NULL";
    eventually(PATIENCE * 2, async || owner.query_one(begun, &[]).await.unwrap().get(0)).await;
    let rows = ROWS.replace("'order'", &format!("'{}'", kinds[0])).replace("'payment'", &format!("'{}'", kinds[1]));
    owner.batch_execute(&rows).await.unwrap();
    for relay in [true, false] {
        eventually(PATIENCE * 6, async || published(&topics, relay).await.0.len() == 202).await;
    }
    relay.signal(rustix::process::Signal::TERM);
    assert_eq!(relay.wait().await, Some(0), "{}", relay.log());
    let ((theirs, their_order), (ours, our_order)) = (published(&topics, false).await, published(&topics, true).await);
    assert_eq!(their_order, our_order, "one transaction: its order is that of created_at");
    assert_eq!(theirs, ours, "left: Debezium's, right: the relay's");
}
