use reqwest::{Client, Method, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
}

async fn start(limit: Duration) -> (Running, State) {
    let state = State {
        heartbeat: Arc::new(Heartbeat::new(limit)),
        readiness: Readiness::default(),
        exporter: Exporter::detached(),
        page: None,
        tokens: None,
        token_for_metrics: false,
        ending: CancellationToken::new(),
    };
    serving(state).await
}

async fn serving(state: State) -> (Running, State) {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = bind(&Config { listen, ..Config::default() }).await.expect("binds");
    let address = listener.local_addr().expect("bound");
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(serve(listener, state.clone(), async {
        stopped.await.unwrap_or(());
    }));
    (Running { address, stop, served }, state)
}

fn client() -> Client {
    Client::builder().no_proxy().build().expect("builds")
}

async fn ask(running: &Running, method: Method, path: &str) -> (StatusCode, String) {
    let request = client().request(method, format!("http://{}{path}", running.address));
    let response = request.send().await.expect("answers");
    (response.status(), response.text().await.expect("text"))
}

#[tokio::test]
async fn alive_while_the_engine_moves_and_no_longer() {
    let (running, state) = start(Duration::from_secs(3600)).await;
    state.heartbeat.beat();
    assert_eq!(ask(&running, Method::GET, "/livez").await, (StatusCode::OK, "alive\n".into()));
    let (running, _state) = start(Duration::ZERO).await;
    let (status, text) = ask(&running, Method::GET, "/livez").await;
    assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "the engine has not moved for 0 s\n"));
}

#[tokio::test]
async fn ready_when_nothing_is_missing_else_one_reason_a_line() {
    let (running, state) = start(Duration::from_secs(1)).await;
    let latches = [state.readiness.latch("database not reached"), state.readiness.latch("schema version unknown")];
    let (status, text) = ask(&running, Method::GET, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(text, "database not reached\nschema version unknown\n");
    drop(latches);
    assert_eq!(ask(&running, Method::GET, "/readyz").await, (StatusCode::OK, "ready\n".into()));
}

#[tokio::test]
async fn metrics_come_as_prometheus_text() {
    let (running, _state) = start(Duration::from_secs(1)).await;
    let response = client().get(format!("http://{}/metrics", running.address)).send().await.expect("answers");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(response.text().await.expect("text").contains("# TYPE outbox_relay_build_info gauge\n"));
}

#[tokio::test]
async fn nothing_else_is_there_and_nothing_can_be_written() {
    let (running, _state) = start(Duration::from_secs(1)).await;
    for path in ["/", "/livez/", "/metrics/x", "/status", "/..%2flivez"] {
        assert_eq!(ask(&running, Method::GET, path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        assert!(!ask(&running, Method::HEAD, path).await.0.is_client_error(), "{path}");
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS, Method::TRACE] {
            let (status, _) = ask(&running, method.clone(), path).await;
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn long_urls_and_headers_are_refused() {
    let (running, _state) = start(Duration::from_secs(1)).await;
    let (status, _) = ask(&running, Method::GET, &format!("/livez?{}", "x".repeat(5000))).await;
    assert_eq!(status, StatusCode::URI_TOO_LONG);
    let request = client().get(format!("http://{}/livez", running.address)).header("x", "y".repeat(20_000));
    assert_eq!(request.send().await.expect("answers").status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[tokio::test]
async fn a_port_in_use_is_said_with_its_fix() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let listen = taken.local_addr().expect("bound");
    let error = bind(&Config { listen, ..Config::default() }).await.expect_err("it is taken");
    assert_eq!(error.to_string(), format!("cannot listen on {listen}: address already in use (set [admin] listen)"));
}

#[tokio::test]
async fn a_client_that_stays_does_not_hold_the_end() {
    let (running, _state) = start(Duration::from_secs(1)).await;
    let mut client = TcpStream::connect(running.address).await.expect("connects");
    client.write_all(b"GET /livez HTTP/1.1\r\nx").await.expect("writes");
    ask(&running, Method::GET, "/livez").await;
    running.stop.send(()).expect("it is serving");
    let served = timeout(Duration::from_secs(10), running.served).await.expect("it ends");
    served.expect("no panic").expect("no error");
}
