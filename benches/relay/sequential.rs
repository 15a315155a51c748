//! `sequential`: one row, one awaited send, one UPDATE of a cursor; what most teams write.

use std::time::{Duration, Instant};

use outbox_relay::position::Timestamp;
use outbox_relay::sink::kafka::ProducerKind;
use outbox_testkit::postgres::connect;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::Timeout;

use super::produce::LIMIT;
use super::stage::{Stage, Way, cluster};

/// Relays the first `rows` rows of a table; rows a second.
pub async fn measure(stage: &Stage, way: &Way, table: &str, rows: u64) -> anyhow::Result<f64> {
    stage.rest().await?;
    stage
        .owner()
        .await?
        .batch_execute(
            "DROP TABLE IF EXISTS public.own_cursor; \
             CREATE TABLE public.own_cursor (created_at timestamptz NOT NULL, id bigint NOT NULL); \
             INSERT INTO public.own_cursor VALUES ('-infinity', 0); \
             GRANT SELECT, UPDATE ON public.own_cursor TO relay",
        )
        .await?;
    let client = connect(&way.url).await?;
    let next = format!(
        "SELECT t.created_at, t.id, t.customer, t.payload FROM {table} t WHERE (t.created_at, t.id) > ($1, $2) \
         ORDER BY t.created_at, t.id LIMIT 1"
    );
    let next = client.prepare(&next).await?;
    let advance = client.prepare("UPDATE public.own_cursor SET created_at = $1, id = $2").await?;
    let topic = stage.topic().await?;
    let producer: FutureProducer = cluster(&way.servers).producer_config(ProducerKind::prompt(LIMIT)).create()?;
    let (mut at, mut id) = (Timestamp::NEG_INFINITY, 0_i64);
    let begun = Instant::now();
    for _ in 0..rows {
        let row = client.query_one(&next, &[&at, &id]).await?;
        (at, id) = (row.get(0), row.get(1));
        let (text, created_at) = (id.to_string(), at.to_string());
        let headers = OwnedHeaders::new_with_capacity(3)
            .insert(Header { key: "id", value: Some(&text) })
            .insert(Header { key: "created_at", value: Some(&created_at) })
            .insert(Header { key: "relay", value: Some("bookings") });
        let (key, payload): (&str, &str) = (row.get(2), row.get(3));
        let record = FutureRecord::to(&topic).key(key).payload(payload).headers(headers);
        producer.send(record, Timeout::After(Duration::from_secs(10))).await.map_err(|(error, _)| error)?;
        client.execute(&advance, &[&at, &id]).await?;
    }
    let took = begun.elapsed();
    stage.close(&topic, rows).await?;
    Ok(rows as f64 / took.as_secs_f64())
}
