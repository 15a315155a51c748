//! A proxy before PostgreSQL that spoils one message of what the server says while a session is opened, by its number.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What a flood has at most: far more than any sign-in, and than the buffers of a socket.
pub const FLOOD: usize = 64 << 20;

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its first half, then the end of the connection.
    Cut,
    /// Its first half, then nothing more.
    Silent,
    /// It says that it is a byte shorter.
    Shorter,
    /// It says that it is a byte longer.
    Longer,
    /// It says that it has no body, not even a length.
    Empty,
    /// It says that its length is negative.
    Negative,
    /// It is of another type.
    Type(u8),
    /// It says that it is two gigabytes long, and goes on until nobody reads.
    Oversized,
}

/// See the module.
pub struct StartProxy {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    types: Mutex<Vec<u8>>,
    taken: AtomicUsize,
}

impl StartProxy {
    /// Listens on a free port for the server on `target`, for one connection; spoils the message with this number.
    pub async fn start(target: u16, fault: Option<(usize, Fault)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
            let ((mut asking, answered), (answering, mut asked)) = (client.into_split(), server.into_split());
            let asks = tokio::spawn(async move { tokio::io::copy(&mut asking, &mut asked).await });
            carry_back(answering, answered, fault, &shared).await;
            asks.abort();
        });
        Self { port, state }
    }

    /// The types of the messages that the server has sent.
    pub fn types(&self) -> Vec<u8> {
        self.state.types.lock().unwrap().clone()
    }

    /// How much of a flood the client has taken, its socket included.
    pub fn taken(&self) -> usize {
        self.state.taken.load(Ordering::SeqCst)
    }
}

async fn carry_back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, fault: Option<(usize, Fault)>, state: &State) {
    let mut head = [0; 5];
    while from.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut message = head.to_vec();
        message.resize(1 + usize::try_from(length).unwrap(), 0);
        if from.read_exact(&mut message[5..]).await.is_err() {
            return;
        }
        let number = state.types.lock().unwrap().len();
        state.types.lock().unwrap().push(head[0]);
        let goes_on = match fault {
            Some((at, fault)) if at == number => spoil(fault, message, &mut to, state).await,
            _ => to.write_all(&message).await.is_ok(),
        };
        if !goes_on {
            return;
        }
    }
}

/// Whether what follows is carried.
async fn spoil(fault: Fault, mut message: Vec<u8>, to: &mut OwnedWriteHalf, state: &State) -> bool {
    let length = u32::try_from(message.len() - 1).unwrap();
    let mut says = |length: u32| message[1..5].copy_from_slice(&length.to_be_bytes());
    match fault {
        Fault::Cut | Fault::Silent => {
            let _ = to.write_all(&message[..message.len().div_ceil(2)]).await;
            if fault == Fault::Silent {
                std::future::pending::<()>().await;
            }
            return false;
        }
        Fault::Shorter => says(length - 1),
        Fault::Longer => says(length + 1),
        Fault::Empty => says(3),
        Fault::Negative => says(u32::MAX),
        Fault::Type(kind) => message[0] = kind,
        Fault::Oversized => {
            says(i32::MAX.unsigned_abs());
            if to.write_all(&message).await.is_err() {
                return false;
            }
            let part = vec![b'x'; 64 << 10];
            while state.taken.load(Ordering::SeqCst) < FLOOD && to.write_all(&part).await.is_ok() {
                state.taken.fetch_add(part.len(), Ordering::SeqCst);
            }
            return false;
        }
    }
    to.write_all(&message).await.is_ok()
}
