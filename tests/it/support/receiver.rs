//! An HTTP receiver of the test's own that answers each request by its content, counts what is open at the same time,
//! and can be gone: a runtime of its own ends with all of its connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    pub at: SystemTime,
    /// `<relay>/<id>`.
    pub key: String,
    /// The due instant behind it, of rows that become due.
    pub due: Option<String>,
    pub body: String,
    pub headers: HeaderMap,
    /// An operator had it sent again.
    pub replayed: bool,
    /// What it was answered; 0 as long as it is open.
    pub status: u16,
    /// How many requests were open when it came, itself counted.
    pub at_once: usize,
}

type Answer = Box<dyn Fn(&Request) -> (u16, Duration) + Send>;

struct Inside {
    answer: Answer,
    requests: Vec<Request>,
    open: usize,
    /// While true, no request is answered.
    held: watch::Sender<bool>,
}

/// See the module.
pub struct Receiver {
    port: u16,
    inside: Arc<Mutex<Inside>>,
    runtime: Option<Runtime>,
}

impl Receiver {
    /// Listens on a free port; accepts everything.
    pub fn start() -> Self {
        let answer: Answer = Box::new(|_| (200, Duration::ZERO));
        let inside =
            Arc::new(Mutex::new(Inside { answer, requests: Vec::new(), open: 0, held: watch::Sender::new(false) }));
        let mut receiver = Self { port: 0, inside, runtime: None };
        receiver.up();
        receiver
    }

    /// Answers each request with this status, after this long, from now on.
    pub fn answer(&self, answer: impl Fn(&Request) -> (u16, Duration) + Send + 'static) {
        lock(&self.inside).answer = Box::new(answer);
    }

    /// Answers nothing until [`Self::release`].
    pub fn hold(&self) {
        lock(&self.inside).held.send_replace(true);
    }

    /// Answers what was held, and everything from now on.
    pub fn release(&self) {
        lock(&self.inside).held.send_replace(false);
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.inside).requests.clone()
    }

    /// The ids that it has accepted from this relay, in order.
    pub fn accepted(&self, relay: &str) -> Vec<String> {
        let accepted = self.requests().into_iter().filter(|request| request.status == 200);
        accepted.filter_map(|request| Some(request.key.strip_prefix(relay)?.strip_prefix('/')?.to_owned())).collect()
    }

    /// It is gone: connections are cut, new ones refused.
    pub fn down(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // On a thread of its own: this one belongs to another runtime, which must not wait.
            std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(5))).join().unwrap();
        }
        lock(&self.inside).open = 0;
    }

    /// It is back, on the same port.
    pub fn up(&mut self) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(respond).with_state(Arc::clone(&self.inside));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await
        });
        self.runtime = Some(runtime);
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// An HTTP relay of `public.bookings` to it; `more` is added below `[[relay]]`.
    pub fn relay(&self, name: &str, more: &str) -> String {
        format!(
            "[[relay]]\nname = \"{name}\"\nstart = \"beginning\"\n{more}\n[relay.source.stream]\n\
             table = \"public.bookings\"\n[relay.sink.http]\nurl = \"{}/rows\"\n\
             body = \"{{{{ payload }}}}\"\n",
            self.url()
        )
    }

    /// The same by SMS: every number is the same, the text is the payload.
    pub fn sms(&self, name: &str, more: &str) -> String {
        format!(
            "[[relay]]\nname = \"{name}\"\nstart = \"beginning\"\n{more}\n[relay.source.stream]\n\
             table = \"public.bookings\"\n[relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"{}\"\n\
             account_sid = \"AC1\"\nauth_token = \"hunter2\"\nfrom = \"+15550000000\"\nto = \"+15551234567\"\n\
             text = \"{{{{ payload }}}}\"\n",
            self.url()
        )
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn lock(inside: &Mutex<Inside>) -> std::sync::MutexGuard<'_, Inside> {
    inside.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a request as open until it is dropped, also when the client goes away.
struct Open(Arc<Mutex<Inside>>);

impl Drop for Open {
    fn drop(&mut self) {
        let mut inside = lock(&self.0);
        inside.open = inside.open.saturating_sub(1);
    }
}

/// An idempotency key without its due instant, and that.
fn split(key: &str) -> (String, Option<String>) {
    let is_instant = |last: &str| last.len() >= 20 && last.ends_with('Z') && last.contains('T');
    match key.rsplit_once('/').filter(|(_, last)| is_instant(last)) {
        Some((key, due)) => (key.to_owned(), Some(due.to_owned())),
        None => (key.to_owned(), None),
    }
}

async fn respond(State(inside): State<Arc<Mutex<Inside>>>, headers: HeaderMap, body: String) -> StatusCode {
    let text = |name: &str| headers.get(name).map_or(String::new(), |value| value.to_str().unwrap().to_owned());
    let (index, status, pause, mut held) = {
        let mut inside = lock(&inside);
        inside.open += 1;
        let at_once = inside.open;
        let (key, due) = split(&text("idempotency-key"));
        let replayed = text("outbox-replayed") == "true";
        let request =
            Request { at: SystemTime::now(), key, due, body, headers: headers.clone(), replayed, status: 0, at_once };
        let (status, pause) = (inside.answer)(&request);
        inside.requests.push(request);
        (inside.requests.len() - 1, status, pause, inside.held.subscribe())
    };
    let open = Open(Arc::clone(&inside));
    held.wait_for(|held| !held).await.map(drop).unwrap_or_default();
    tokio::time::sleep(pause).await;
    lock(&inside).requests[index].status = status;
    drop(open);
    StatusCode::from_u16(status).unwrap()
}
