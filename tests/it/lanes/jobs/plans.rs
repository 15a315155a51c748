//! What looks and claims of due rows in lanes cost: as much as there are rows to look through, not that times what is on its way.

use outbox_relay::source;
use outbox_relay::source::lane::Reach;
use outbox_relay::source::pending::{Due, Taking, inspect};

use super::{Source, Stage};
use crate::ordering::plans::plan;
use crate::support::relays::parse;
use crate::support::sessions;

/// Without statistics, as right after a start, and with those of an empty table, as after a quiet night.
#[tokio::test]
async fn looks_and_claims_in_lanes_compare_no_row_with_each_that_is_on_its_way() {
    let stage = Stage::new(Source::Due).await;
    let config = parse(&stage.text(200, ["", "", ""]));
    let source::Config::Pending(pending) = &config.relays[0].source else { panic!("due work") };
    let session = sessions(&stage.database, "relay", "plans").open().await.unwrap();
    let due = Due::new(&inspect(&session, pending).await.unwrap().unwrap(), pending);
    let claim = |taking, probes| due.lane_claim_sql(&[], taking, Reach { jobs: 800, probes });
    for statistics in ["", "ANALYZE jobs; ANALYZE outbox.claim"] {
        stage.owner.batch_execute(statistics).await.unwrap();
        let look = due.lane_look_sql(800);
        let looked = plan(&session, &look, "'h', NULL").await;
        assert!(looked.matches("hashed SubPlan").count() >= 2, "{statistics}: {look}\n{looked}");
        let all = [Taking::MarkLater, Taking::MarkFirst].map(|taking| [(taking, false), (taking, true)]);
        for (taking, probes) in all.into_iter().flatten() {
            let sql = claim(taking, probes);
            let claimed = plan(&session, &sql, "'h', NULL, now(), 't', 'r', 1.0, 200").await;
            for part in ["hashed SubPlan", "Hash Full Join"] {
                assert!(claimed.contains(part), "{statistics}: {part}: {sql}\n{claimed}");
            }
        }
    }
}
