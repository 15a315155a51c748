//! Of several replicas one keeps a cursor that moves, and paces itself by freshness; the others take over when it ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::outside::{get, listener, printed, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

const EVERY: Duration = Duration::from_millis(20);

/// Inserts a row every [`EVERY`].
async fn insert(owner: &Client, rows: usize) {
    for _ in 0..rows {
        owner.batch_execute("INSERT INTO public.bookings DEFAULT VALUES").await.unwrap();
        tokio::time::sleep(EVERY).await;
    }
}

#[tokio::test]
async fn one_replica_keeps_a_cursor_that_moves_and_another_takes_over_when_it_is_killed() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("kept", ""));
    let replicas = ["a", "b", "c"].map(|name| Process::spawn(&text, &["run", "--replica-id", name]));
    let counts = || replicas.each_ref().map(|process| printed(process, "kept").len());
    let total = || counts().iter().sum::<usize>();
    insert(&owner, 100).await;
    eventually(PATIENCE, async || total() == 100).await;

    insert(&owner, 200).await;
    eventually(PATIENCE, async || total() == 300).await;
    // Who published each of the last 200 rows, in their order.
    let of = |(index, process)| printed(process, "kept").into_iter().map(move |id| (id.parse::<u64>().unwrap(), index));
    let by: BTreeMap<u64, usize> = replicas.iter().enumerate().flat_map(of).filter(|(id, _)| *id > 100).collect();
    let by: Vec<usize> = by.into_values().collect();
    // A machine that stalls for a tenth of a second hands it over. Replicas that took turns would do so at each of some 150.
    let handed_over = by.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(by.len() == 200 && handed_over <= 5, "{handed_over} times: {by:?}");
    let holder = *by.last().unwrap();

    replicas[holder].signal(Signal::KILL);
    let others = || (0..3).filter(|&index| index != holder).map(|index| counts()[index]).sum::<usize>();
    let before = others();
    insert(&owner, 50).await;
    eventually(PATIENCE, async || others() >= before + 50).await;
}

#[tokio::test]
async fn freshness_of_a_second_makes_few_turns_and_rows_are_no_older() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relays = stdout_relay("fresh", "").replacen("name = \"fresh\"", "name = \"fresh\"\nfreshness = \"1s\"", 1);
    let process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE, async || printed(&process, "fresh").len() == 1).await;

    let begun = Instant::now();
    insert(&owner, 200).await;
    eventually(PATIENCE, async || printed(&process, "fresh").len() == 201).await;
    let metrics = get(&format!("{}/metrics", listener(&process).await)).await.1;
    let turns = "outbox_relay_turns_total{cursor=\"fresh\",result=\"relayed\"} ";
    let turns: u64 = metrics.lines().find_map(|line| line.strip_prefix(turns)).unwrap().parse().unwrap();
    // At 10 ms it would be about as many as rows.
    assert!(turns <= 5 + 3 * begun.elapsed().as_secs(), "{turns} turns in {:?}", begun.elapsed());
}
