//! How often a row is in the relay's memory on its way to each sink: about twice. Three times as an email, which is encoded and then
//! put behind its header, and back into PostgreSQL, as a parameter or as a dead letter, whose driver copies what it sends once more.
//!
//! `ROW_MIB=1,7,64 cargo test --test it odd_rows::copies -- --nocapture` prints a table. `ROW_CGROUP=DIR` puts each relay into a memory
//! control group (version 1) with a limit, under the shipped `max_row_bytes`: larger rows become dead letters without their payload.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use outbox_testkit::smtp::{Options, SmtpServer};
use tokio_postgres::Client;

use super::{PATIENT, fill, peak, topic};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, broker, database, eventually, kafka_relay, toml};

/// What a process may take besides its row: buffers of connections, freed pages that the allocator has not given back.
const SLACK: u64 = 12;
const TEMPLATES: [&str; 3] = ["http", "sms", "email"];
/// The most MiB of a template.
const LARGEST_TEXT: usize = 8;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Each with how often a row may be in memory. Templates print no more than 8 MiB: larger rows become dead letters.
const SINKS: [(&str, u64); 8] = [
    ("kafka", 2),
    ("kafka row", 2),
    ("http row", 2),
    ("http", 2),
    ("webhook", 2),
    ("sms", 2),
    ("email", 3),
    ("sql", 3),
];

/// A receiver that takes bodies of any size, keeps nothing of them, and accepts; its port.
fn sponge() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || absorb(&stream.unwrap()));
        }
    });
    port
}

fn absorb(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
        if (&mut &*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// A relay named `r` to a sink of this kind; rows that a sink cannot send become dead letters.
async fn relay(kind: &str, folder: &std::path::Path, post: &SmtpServer) -> String {
    let source = "[[relay]]\nname = \"r\"\nstart = \"beginning\"\non_poison = \"dead_letter\"\n\
                  [relay.source.stream]\ntable = \"public.bookings\"\n";
    let http = |port: u16, body: &str| {
        format!("{source}[relay.sink.http]\nurl = \"http://127.0.0.1:{port}/\"\nmethod = \"POST\"\nbody = \"{body}\"\n")
    };
    match kind {
        "kafka" => {
            let topic = topic("copies", &[("max.message.bytes", "104000000")]).await;
            kafka_relay("r", &topic, "on_poison = \"dead_letter\"")
        }
        "kafka row" => {
            let topic = topic("copies", &[("max.message.bytes", "104000000")]).await;
            format!("{source}[relay.sink.kafka]\ntopic = \"{topic}\"\nkey = \"customer\"\npayload = {{ row = true }}\n")
        }
        "http" => http(sponge(), "{{ payload }}"),
        "http row" => http(sponge(), "row"),
        "webhook" => {
            std::fs::write(folder.join("secret"), SECRET).unwrap();
            format!(
                "{source}[relay.sink.webhook]\nurl = \"http://127.0.0.1:{}/\"\nsecret_files = [\"{}/secret\"]\n\
                 allow = [\"127.0.0.0/8\"]\nbody_limit = \"64MiB\"\n",
                sponge(),
                folder.display()
            )
        }
        "sql" => format!(
            "{source}[relay.sink.sql]\nstatement = \"INSERT INTO public.copy VALUES ($1)\"\n\
             parameters = [\"payload\"]\n"
        ),
        "sms" => format!(
            "{source}[relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"http://127.0.0.1:{}\"\naccount_sid = \"AC1\"\n\
             auth_token = \"hunter2\"\nfrom = \"+15550000000\"\nto = \"+15551234567\"\ntext = \"{{{{ payload }}}}\"\n",
            sponge()
        ),
        _ => format!(
            "{source}[relay.sink.email]\nserver = \"127.0.0.1\"\nport = {}\nsecurity = \"none\"\n\
             from = \"shop@example.com\"\nto = \"ann@example.com\"\n[relay.sink.email.templates.t]\n\
             subject = \"s\"\ntext = \"{{{{ payload }}}}\"\n",
            post.port()
        ),
    }
}

async fn passed(owner: &Client, id: i32) -> bool {
    let sql = "SELECT position_id FROM outbox.cursor WHERE name = 'r'";
    let position: Option<String> = owner.query_opt(sql, &[]).await.unwrap().and_then(|row| row.get(0));
    position.is_some_and(|position| position == id.to_string())
}

/// What a relay's memory grows by at most while a row of so many MiB passes, in MiB.
async fn growth(database: &Database, owner: &Client, kind: &str, mebibytes: usize) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let post = SmtpServer::start(&Options::default()).await.unwrap();
    let group = std::env::var("ROW_CGROUP").ok();
    let turn = if group.is_some() { "[relay.turn]\ndeadline = \"30s\"\n" } else { PATIENT };
    let text = relay(kind, folder.path(), &post).await + turn;
    let replica = Process::spawn(&toml(database, "relay", Some(&broker().await.bootstrap_servers()), &text), &["run"]);
    if let Some(group) = &group {
        std::fs::write(format!("{group}/cgroup.procs"), replica.pid.to_string()).unwrap();
    }
    fill(owner, "64", 1).await;
    eventually(PATIENCE * 2, || passed(owner, 1)).await;
    // Resets VmHWM to what is resident now.
    std::fs::write(format!("/proc/{}/clear_refs", replica.pid), "5").unwrap();
    let idle = peak(&replica);
    fill(owner, &format!("{mebibytes} * 1024 * 1024"), 1).await;
    eventually(PATIENCE * 12, || passed(owner, 2)).await;
    let growth = peak(&replica) - idle;
    let letters = "SELECT string_agg(format('%s, %s bytes of payload', error ->> 'code', length(payload)), ' ') \
                   FROM outbox.dead_letter";
    let letters = owner.query_one(letters, &[]);
    let letters: Option<String> = letters.await.unwrap().get(0);
    println!("{kind:>9}: {mebibytes:3} MiB row, {growth:3} MiB above {idle} MiB {}", letters.unwrap_or_default());
    growth
}

// Guarantee: failures.copies
#[tokio::test(flavor = "multi_thread")]
async fn row_takes_two_copies_three_as_email_and_to_postgresql() {
    let sizes: Vec<usize> = match std::env::var("ROW_MIB") {
        Ok(sizes) => sizes.split(',').map(|size| size.parse().unwrap()).collect(),
        Err(_) => vec![7, 15],
    };
    let mut over = Vec::new();
    for (kind, copies) in SINKS {
        for size in &sizes {
            let database = database().await;
            let owner = bookings(&database, CLOCK).await;
            owner
                .batch_execute("CREATE TABLE copy (payload text); GRANT SELECT, INSERT ON copy TO relay")
                .await
                .unwrap();
            let growth = growth(&database, &owner, kind, *size).await;
            let copies = if TEMPLATES.contains(&kind) && *size > LARGEST_TEXT { 3 } else { copies };
            if growth > copies * *size as u64 + SLACK {
                over.push((kind, *size, growth));
            }
        }
    }
    assert_eq!(over, [], "more than the copies and {SLACK} MiB");
}
