//! A network of a given round-trip time: a proxy that holds each chunk for a while, in both directions.
//!
//! It delays and does not throttle: chunks travel behind each other, as many as [`IN_FLIGHT`]. Threads of the system and
//! not of tokio, whose clock has ticks of a millisecond, would make two of one. A connection's threads end with it, the
//! others with the process.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Bytes of a chunk, at most.
const CHUNK: usize = 64 << 10;
/// Chunks on their way in one direction: 8 MiB, of which a delay of 1 ms lets through 8 GB a second.
const IN_FLIGHT: usize = 128;

/// See the module. Without a delay it is the control: what a proxy costs in any case.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    listener: Option<TcpListener>,
    micros: Arc<AtomicU64>,
}

impl Proxy {
    /// Takes a port; nobody is answered yet.
    pub fn bind() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        Ok(Self { address: listener.local_addr()?, listener: Some(listener), micros: Arc::default() })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// From now on connections lead there.
    pub fn forward(&mut self, to: SocketAddr) {
        let Some(listener) = self.listener.take() else { return };
        let micros = Arc::clone(&self.micros);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is gone shows as a closed connection, as it would without a proxy.
                if let Ok(server) = TcpStream::connect(to) {
                    let _ = join(client, server, &micros);
                }
            }
        });
    }

    /// How long each direction takes from now on.
    pub fn delay(&self, one_way: Duration) {
        self.micros.store(u64::try_from(one_way.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

fn join(client: TcpStream, server: TcpStream, micros: &Arc<AtomicU64>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let (sender, receiver) = sync_channel(IN_FLIGHT);
        let micros = Arc::clone(micros);
        std::thread::spawn(move || take(from, &sender, &micros));
        std::thread::spawn(move || give(to, &receiver));
    }
    Ok(())
}

/// A chunk, and when it arrives.
type Chunk = (Instant, Vec<u8>);

fn take(mut from: TcpStream, sender: &SyncSender<Chunk>, micros: &AtomicU64) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let due = Instant::now() + Duration::from_micros(micros.load(Ordering::Relaxed));
        if sender.send((due, buffer[..read].to_vec())).is_err() {
            break;
        }
    }
}

fn give(mut to: TcpStream, receiver: &Receiver<Chunk>) {
    while let Ok((due, chunk)) = receiver.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&chunk).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
