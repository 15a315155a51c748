//! A proxy before a Kafka broker that spoils one produce request, so that the broker itself refuses it, as it refuses one
//! for a partition that it does not lead for a moment; and that alters the broker's answers.

mod answers;

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_testkit::kafka::{BrokerOptions, Listener, RealBroker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use answers::Asked;
pub use answers::{Absent, Answers, Elsewhere, Place, Sasl};

/// The key of a produce request (Kafka protocol, request header).
const PRODUCE: [u8; 2] = [0, 0];
/// So far before the end of a request stands a byte of its last record's value, when that is longer.
const IN_VALUE: usize = 256;

/// So long the spoiled request waits for another behind it.
const HOLD: Duration = Duration::from_secs(1);

/// See the module.
pub struct KafkaProxy {
    pub broker: RealBroker,
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    target: AtomicU16,
    armed: AtomicBool,
    holds: AtomicBool,
    spoiled: AtomicUsize,
    answers: Mutex<Answers>,
    altered: AtomicUsize,
    swaps: AtomicBool,
    /// Produce requests since `swaps` was set.
    produced: AtomicUsize,
}

impl KafkaProxy {
    /// A broker of its own, and the way to it; spoils nothing yet. Ends with the test's runtime.
    pub async fn start() -> Self {
        Self::start_with("PLAINTEXT", Vec::new()).await
    }

    /// The same, for a listener of this protocol with these settings.
    pub async fn start_with(protocol: &'static str, settings: Vec<(&'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let way = Listener { name: "spoiled".to_owned(), protocol, advertised: Some(port), settings };
        let options = BrokerOptions { listeners: vec![way], ..BrokerOptions::default() };
        let broker = RealBroker::start_with(&options).await.unwrap();
        let target = broker.listener("spoiled").unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        let state = Arc::new(State { target: AtomicU16::new(target), ..State::default() });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, Arc::clone(&shared)));
            }
        });
        Self { broker, port, state }
    }

    /// What clients are told to connect to.
    pub fn servers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Spoils the next produce request, once. Its last record's value is to be longer than 300 bytes.
    pub fn arm(&self) {
        self.state.armed.store(true, Ordering::SeqCst);
    }

    /// Swaps the next two answers to produce requests, once, and spoils the second request: the broker stores the first only. Both must
    /// be on their way together, and end with a value that compression leaves longer than 300 bytes.
    pub fn swap(&self) {
        self.state.swaps.store(true, Ordering::SeqCst);
    }

    /// Whether it holds a spoiled request back.
    pub fn holds(&self) -> bool {
        self.state.holds.load(Ordering::SeqCst)
    }

    /// From now on answers come so.
    pub fn answer(&self, answers: Answers) {
        *self.state.answers.lock().unwrap() = answers;
    }

    /// How many answers it has altered.
    pub fn altered(&self) -> usize {
        self.state.altered.load(Ordering::SeqCst)
    }

    /// How many it has spoiled.
    pub fn spoiled(&self) -> usize {
        self.state.spoiled.load(Ordering::SeqCst)
    }
}

async fn carry(client: TcpStream, state: Arc<State>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", state.target.load(Ordering::SeqCst))).await else { return };
    let (mut asking, answered) = client.into_split();
    let (answering, mut asked) = server.into_split();
    let questions = Arc::new(Mutex::new(Asked::default()));
    let back = tokio::spawn(carry_back(answering, answered, Arc::clone(&state), Arc::clone(&questions)));
    while let Ok(length) = asking.read_i32().await {
        let mut request = vec![0; usize::try_from(length).unwrap()];
        if asking.read_exact(&mut request).await.is_err() {
            break;
        }
        questions.lock().unwrap().note(&request);
        let armed = request.starts_with(&PRODUCE) && state.armed.swap(false, Ordering::SeqCst);
        let second = request.starts_with(&PRODUCE)
            && state.swaps.load(Ordering::SeqCst)
            && state.produced.fetch_add(1, Ordering::SeqCst) == 1;
        if armed || second || request.starts_with(&PRODUCE) && state.answers.lock().unwrap().spoils() {
            let place = request.len() - IN_VALUE;
            request[place] ^= 1;
            state.spoiled.fetch_add(1, Ordering::SeqCst);
        }
        if armed {
            // The broker is not to answer before the client has sent what it sends without an answer.
            state.holds.store(true, Ordering::SeqCst);
            let _ = tokio::time::timeout(HOLD, asking.peek(&mut [0])).await;
            state.holds.store(false, Ordering::SeqCst);
        }
        if asked.write_i32(length).await.is_err() || asked.write_all(&request).await.is_err() {
            break;
        }
    }
    back.abort();
}

/// Keeps what comes from the first answer to a produce request on, until the second is there; then exchanges their correlation ids.
fn swapped(frame: Vec<u8>, held: &mut Vec<Vec<u8>>, produced: bool, state: &State) -> Vec<Vec<u8>> {
    if !state.swaps.load(Ordering::SeqCst) || held.is_empty() && !produced {
        return vec![frame];
    }
    held.push(frame);
    if held.len() > 1 && produced {
        state.swaps.store(false, Ordering::SeqCst);
        state.altered.fetch_add(1, Ordering::SeqCst);
        let last = held.len() - 1;
        let (first, second) = (held[0][4..8].to_vec(), held[last][4..8].to_vec());
        held[0][4..8].copy_from_slice(&second);
        held[last][4..8].copy_from_slice(&first);
        return std::mem::take(held);
    }
    Vec::new()
}

async fn carry_back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: Arc<State>, asked: Arc<Mutex<Asked>>) {
    let mut held = Vec::new();
    while let Ok(length) = from.read_i32().await {
        let mut frame = length.to_be_bytes().to_vec();
        frame.resize(4 + usize::try_from(length).unwrap(), 0);
        if from.read_exact(&mut frame[4..]).await.is_err() {
            return;
        }
        let produced = asked.lock().unwrap().is_produce(&frame[4..]);
        if state.answers.lock().unwrap().alter(&mut frame, &mut asked.lock().unwrap()) {
            state.altered.fetch_add(1, Ordering::SeqCst);
        }
        for frame in swapped(frame, &mut held, produced, &state) {
            if to.write_all(&frame).await.is_err() {
                return;
            }
        }
    }
}
