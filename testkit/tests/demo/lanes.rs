//! The scenarios lanes and jobs.

use serde_json::Value;

use super::{PATIENCE, demo, interrupted, left_in};

// Guarantee: lanes.demo
#[tokio::test]
async fn demo_of_lanes_shows_three_policies_and_leaves_nothing_behind() {
    let (child, dir) = demo("8", &["--scenario", "lanes", "--seed", "7"]);
    let output = tokio::time::timeout(2 * PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    println!("{stdout}");

    let verdict: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((verdict["verdict"].as_str(), verdict["scenario"].as_str()), (Some("pass"), Some("lanes")));
    let options = ["seed", "seconds", "replicas"].map(|key| verdict[key].as_u64());
    assert_eq!(options, [Some(7), Some(8), Some(3)]);
    let count = |of: &Value, key: &str| of[key].as_u64().unwrap();
    let (rows, refused) = (count(&verdict, "rows_committed"), count(&verdict, "refused_rows"));
    assert!(rows > 100 && refused >= 2, "{stdout}");
    let relays = ["halt", "dead_letter", "park_key"].map(|relay| &verdict["relays"][relay]);
    let meanwhile = relays.map(|relay| &relay["meanwhile"]);
    assert_eq!(meanwhile.map(|relay| count(relay, "dead_letters")), [0, refused, 1], "{stdout}");
    assert!(count(meanwhile[0], "waiting_others") > 0, "a halt holds up everybody: {stdout}");
    assert_eq!((count(meanwhile[1], "waiting"), count(meanwhile[2], "waiting")), (0, refused - 1), "{stdout}");
    for relay in relays.map(|relay| &relay["end"]) {
        assert_eq!(count(relay, "sent"), rows, "{stdout}");
        for none in ["waiting", "dead_letters", "parked", "phantom"] {
            assert_eq!(relay[none], 0, "{none}: {stdout}");
        }
    }
    let disordered = relays.map(|relay| relay["end"]["out_of_order"].as_array().unwrap().len());
    assert_eq!(disordered, [0, 1, 0], "{stdout}");
    assert!(verdict["promises"].as_array().unwrap().iter().all(|promise| promise["kept"] == true), "{stdout}");
    let kills = verdict["kills"].as_array().unwrap();
    assert!(kills.len() == 2 && kills.iter().all(|kill| kill["signal"] == "SIGKILL"), "{stdout}");
    assert_eq!(left_in(dir.path()), [""; 0]);
}

// Guarantee: lanes.demo
#[tokio::test]
async fn an_interrupted_demo_of_lanes_is_undecided_and_leaves_nothing_behind() {
    interrupted(&["--scenario", "lanes"]).await;
}

// Guarantee: lanes.demo-jobs
#[tokio::test]
async fn demo_of_jobs_keeps_order_of_each_number_and_leaves_nothing_behind() {
    let (child, dir) = demo("8", &["--scenario", "jobs", "--seed", "7"]);
    let output = tokio::time::timeout(2 * PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    println!("{stdout}");

    let verdict: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((verdict["verdict"].as_str(), verdict["scenario"].as_str()), (Some("pass"), Some("jobs")));
    let rows = verdict["rows_committed"].as_u64().unwrap();
    assert!(rows > 50, "{stdout}");
    for relay in ["alone", "lanes", "requests"] {
        let figures = &verdict["relays"][relay];
        assert_eq!(figures["sent"].as_u64(), Some(rows), "{relay}: {stdout}");
        assert_eq!((&figures["waiting"], &figures["phantom"]), (&0.into(), &0.into()), "{relay}: {stdout}");
        let overtaking = figures["overtaking"].as_u64().unwrap();
        assert_eq!(overtaking > 0, relay == "alone", "{relay}: {stdout}");
    }
    assert!(verdict["promises"].as_array().unwrap().iter().all(|promise| promise["kept"] == true), "{stdout}");
    let kills = verdict["kills"].as_array().unwrap();
    assert!(kills.len() == 2 && kills.iter().all(|kill| kill["signal"] == "SIGKILL"), "{stdout}");
    assert_eq!(left_in(dir.path()), [""; 0]);
}

// Guarantee: lanes.demo-jobs
#[tokio::test]
async fn interrupted_demo_of_jobs_is_undecided_and_leaves_nothing_behind() {
    interrupted(&["--scenario", "jobs"]).await;
}
