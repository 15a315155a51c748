//! `[relay.poll] notify`, and `freshness`.

use super::*;

fn notified(pool_size: &str) -> String {
    let text = with("[relay.sink.kafka]", "[relay.poll]\nnotify = true\n[relay.sink.kafka]");
    let text = text.split("\n[[relay]]\nname = \"sms\"").next().expect("the first relay").to_owned();
    text.replacen("[kafka]", &format!("{pool_size}\n[kafka]"), 1)
}

#[test]
fn it_is_off_unless_written_and_takes_a_connection_of_the_pool() {
    let config = parse(GOOD).expect("valid");
    assert!(config.postgres.dedicated == 0 && config.relays.iter().all(|relay| !relay.poll.notify));
    let config = parse(&notified("")).expect("valid");
    assert!(config.postgres.dedicated == 1 && config.relays[0].poll.notify);
    assert!(show::relay(&config.relays[0], show::Secrets::Hidden).contains("\nnotify = true\n"));
    assert!(parse(&notified("pool_size = 5")).is_ok());
    let problems = parse(&notified("pool_size = 4")).expect_err("too few");
    assert!(problems.to_string().contains("one for notifications") && problems.list().len() == 1, "{problems}");
}

#[test]
fn claims_of_actions_take_a_connection_of_the_pool() {
    let schedules = |pool_size: &str| {
        let (head, _) = notified(pool_size)
            .split_once("[relay.source.stream]")
            .map(|(head, _)| (head.to_owned(), ()))
            .expect("a source");
        format!(
            "{head}[relay.source.schedule]\n[relay.sink.kafka]\ntopic = \"jobs\"\n[relay.sink.kafka.payload]\nrow = true\n"
        )
    };
    assert_eq!(parse(&schedules("")).expect("valid").postgres.dedicated, 1);
    assert!(parse(&schedules("pool_size = 5")).is_ok());
    let problems = parse(&schedules("pool_size = 4")).expect_err("too few");
    assert!(problems.to_string().contains("claims of a schedule's actions"), "{problems}");
}

#[test]
fn due_work_is_not_woken() {
    let pending = "[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\nsent = \"sent\"";
    let text = notified("").replacen("[relay.source.stream]\ntable = \"public.bookings\"", pending, 1);
    let problems = parse(&text).expect_err("no stream");
    assert_eq!(problems.list()[0].key, "relay[events].poll.notify", "{problems}");
}

#[test]
fn freshness_is_of_streams_and_within_its_bounds() {
    let written = |value: &str| with("name = \"events\"", &format!("name = \"events\"\nfreshness = {value}"));
    let config = parse(GOOD).expect("valid");
    assert_eq!(config.relays[0].poll.freshness, std::time::Duration::from_millis(10));
    assert!(!show::relay(&config.relays[0], show::Secrets::Hidden).contains("freshness"));
    let config = parse(&written("\"250ms\"")).expect("valid");
    assert!(show::relay(&config.relays[0], show::Secrets::Hidden).contains("\nfreshness = \"250ms\"\n"));
    for wrong in ["\"0s\"", "\"2s\"", "10"] {
        let problems = parse(&written(wrong)).expect_err(wrong);
        assert_eq!(problems.list()[0].key, "relay[events].freshness", "{problems}");
    }
    let pending = "[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\nsent = \"sent\"";
    let text = written("\"250ms\"").replacen("[relay.source.stream]\ntable = \"public.bookings\"", pending, 1);
    let problems = parse(&text).expect_err("no stream");
    assert!(problems.list().iter().any(|problem| problem.key == "relay[events].freshness"), "{problems}");
}
