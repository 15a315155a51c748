//! A network between the relay and a server, which can delay, cut, and fall silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// See the module; it ends when dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    network: Network,
    accepting: JoinHandle<()>,
}

#[derive(Clone, Debug)]
struct Network {
    /// Microseconds that each chunk takes, one way.
    delay: Arc<AtomicU64>,
    /// Counts the cuts; a connection ends at the next one.
    cuts: watch::Sender<u64>,
    /// Whether nothing is carried.
    silent: watch::Sender<bool>,
}

impl Proxy {
    /// Listens on this port of the loopback interface and leads to that one.
    pub async fn start(port: u16, to: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let network = Network { delay: Arc::default(), cuts: watch::Sender::new(0), silent: watch::Sender::new(false) };
        let theirs = network.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A server that is gone shows as a closed connection, as it would without a proxy.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await {
                    tokio::spawn(theirs.clone().join(client, server));
                }
            }
        });
        Ok(Self { port, network, accepting })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How long each direction takes from now on.
    pub fn delay(&self, one_way: Duration) {
        self.network.delay.store(u64::try_from(one_way.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Cuts every open connection.
    pub fn cut(&self) {
        self.network.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Whether nothing is carried from now on; connections stay.
    pub fn silence(&self, silent: bool) {
        self.network.silent.send_replace(silent);
    }

    /// Carries everything, at once.
    pub fn heal(&self) {
        self.delay(Duration::ZERO);
        self.silence(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Network {
    async fn join(self, client: TcpStream, server: TcpStream) {
        if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
            return;
        }
        let mut cuts = self.cuts.subscribe();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            () = self.carry(from_client, to_server) => {}
            () = self.carry(from_server, to_client) => {}
            _ = cuts.changed() => {}
        }
    }

    async fn carry(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (mut silent, mut buffer) = (self.silent.subscribe(), vec![0; 64 << 10]);
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let delay = self.delay.load(Ordering::Relaxed);
            if delay > 0 {
                tokio::time::sleep(Duration::from_micros(delay)).await;
            }
            if silent.wait_for(|silent| !silent).await.is_err() || to.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    }
}
