//! A proxy before PostgreSQL that cuts the connection which commits a reservation: before the server gets the commit, or
//! after it, so that its answer is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a reservation's commit looks like on the wire; no other commit begins the next transaction.
const COMMIT: &[u8] = b"COMMIT; BEGIN";

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server never gets the commit.
    Before,
    /// The server gets it; its answer is lost.
    After,
    /// The server never gets it, nor anything later of that connection, which stays open; of every connection.
    Silent,
}

/// See the module.
pub struct Proxy {
    pub port: u16,
    armed: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens on a free port for the server on `target`, until the test's runtime ends; cuts nothing yet.
    pub async fn start(target: u16, cut: Cut) -> Self {
        Self::start_at(target, cut, COMMIT).await
    }

    /// The same, cutting the connection that sends these bytes.
    pub async fn start_at(target: u16, cut: Cut, at: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (armed, cuts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let proxy = Self { port, armed: Arc::clone(&armed), cuts: Arc::clone(&cuts) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target, (cut, at), Arc::clone(&armed), Arc::clone(&cuts)));
            }
        });
        proxy
    }

    /// Cuts the next commit, once.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// How many it has cut.
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

async fn carry(
    mut client: TcpStream,
    target: u16,
    (cut, at): (Cut, &[u8]),
    armed: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
) {
    let mut server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
    let (mut asked, mut answered) = ([0; 65_536], [0; 65_536]);
    loop {
        tokio::select! {
            got = client.read(&mut asked) => {
                let Ok(got @ 1..) = got else { return };
                let commits = asked[..got].windows(at.len()).any(|bytes| bytes == at);
                if commits && cut == Cut::Silent {
                    cuts.fetch_add(1, Ordering::SeqCst);
                    while matches!(client.read(&mut asked).await, Ok(1..)) {}
                    return;
                }
                let cuts_now = commits && armed.swap(false, Ordering::SeqCst);
                if !(cuts_now && cut == Cut::Before) && server.write_all(&asked[..got]).await.is_err() {
                    return;
                }
                if cuts_now {
                    cuts.fetch_add(1, Ordering::SeqCst);
                    if cut == Cut::After {
                        // The server answers into the void, whenever it has done what it was told.
                        drop(client);
                        let _ = server.read(&mut answered).await;
                    }
                    return;
                }
            }
            got = server.read(&mut answered) => {
                let Ok(got @ 1..) = got else { return };
                if client.write_all(&answered[..got]).await.is_err() {
                    return;
                }
            }
        }
    }
}
