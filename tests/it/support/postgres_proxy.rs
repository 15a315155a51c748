//! A proxy before PostgreSQL that changes bytes of what the server says: of all messages but the values of rows, which have
//! no redundancy that anybody could notice a change by.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// The type of a message with the values of a row.
const DATA_ROW: u8 = b'D';
/// The type of a message that describes the columns of rows.
const ROW_DESCRIPTION: u8 = b'T';
/// So far before its end stands the type of the last column.
const TYPE: usize = 12;
/// One message of so many is garbled, and one description of so many.
const ONE_OF: u32 = 12;
const DESCRIPTION_OF: u32 = 3;

/// See the module.
pub struct PostgresProxy {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    random: Mutex<Option<Rng>>,
    altered: AtomicUsize,
}

impl PostgresProxy {
    /// Listens on a free port for the server on `target`, until the test's runtime ends; changes nothing yet.
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
                let ((mut asking, answered), (answering, mut asked)) = (client.into_split(), server.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut asking, &mut asked).await });
                tokio::spawn(carry_back(answering, answered, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    /// From now on answers are changed by these draws; none: they come as they are.
    pub fn garble(&self, random: Option<Rng>) {
        *self.state.random.lock().unwrap() = random;
    }

    /// How many messages it has changed.
    pub fn altered(&self) -> usize {
        self.state.altered.load(Ordering::SeqCst)
    }
}

async fn carry_back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: Arc<State>) {
    let mut head = [0; 5];
    while from.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut message = head.to_vec();
        message.resize(1 + usize::try_from(length).unwrap(), 0);
        if from.read_exact(&mut message[5..]).await.is_err() {
            return;
        }
        if let Some(random) = state.random.lock().unwrap().as_mut()
            && random.u32(0..if head[0] == ROW_DESCRIPTION { DESCRIPTION_OF } else { ONE_OF }) == 0
        {
            garble(&mut message, random);
            state.altered.fetch_add(1, Ordering::SeqCst);
        }
        if to.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// One to four other bytes: of a row only in what stands before its values. One description of a row of two gets another
/// type, as when a byte of its object id is another: a message that is well-formed and says something else.
fn garble(message: &mut [u8], random: &mut Rng) {
    if message[0] == ROW_DESCRIPTION && message.len() > TYPE && random.bool() {
        let end = message.len();
        message[end - TYPE..end - TYPE + 4]
            .copy_from_slice(&random.choice([16_u32, 20, 23, 25, 2950]).unwrap().to_be_bytes());
        return;
    }
    let end = if message[0] == DATA_ROW { message.len().min(7) } else { message.len() };
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(0..end);
        message[at] = if random.bool() { message[at] ^ (1 << random.u8(0..8)) } else { random.u8(..) };
    }
}
