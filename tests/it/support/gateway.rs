//! An SMS provider of the test's own, which answers as it is told and notes what it was asked.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

/// How it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mood {
    /// 201.
    Accept,
    /// This status, with this body.
    Refuse(u16, &'static str),
    /// 429 once, with this `Retry-After`; 201 then.
    Later(&'static str),
    /// 201, after this long.
    Slow(Duration),
    /// No answer at all.
    Hang,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub at: Instant,
    pub form: String,
    pub key: String,
    pub authorization: String,
    pub accepted: bool,
}

#[derive(Debug)]
struct Inside {
    mood: Mood,
    asked: Vec<Asked>,
    open: usize,
    most: usize,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub url: String,
    inside: Arc<Mutex<Inside>>,
}

impl Gateway {
    /// Listens on a free port until the test's runtime ends.
    pub async fn start() -> Self {
        let inside = Arc::new(Mutex::new(Inside { mood: Mood::Accept, asked: Vec::new(), open: 0, most: 0 }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router =
            Router::new().route("/2010-04-01/Accounts/AC1/Messages.json", post(answer)).with_state(Arc::clone(&inside));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, inside }
    }

    /// Changes how it answers.
    pub fn set(&self, mood: Mood) {
        self.inside.lock().unwrap().mood = mood;
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.inside.lock().unwrap().asked.clone()
    }

    /// The ids of the messages accepted so far, in order.
    pub fn accepted(&self) -> Vec<String> {
        let asked = self.asked();
        let keys = asked.iter().filter(|asked| asked.accepted).map(|asked| asked.key.rsplit_once('/').unwrap().1);
        keys.map(str::to_owned).collect()
    }

    /// The most requests that were open at the same time.
    pub fn most_at_once(&self) -> usize {
        self.inside.lock().unwrap().most
    }
}

/// Counts a request as open until it is dropped, also when the client goes away.
struct Open(Arc<Mutex<Inside>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().unwrap().open -= 1;
    }
}

async fn answer(State(inside): State<Arc<Mutex<Inside>>>, headers: HeaderMap, form: String) -> Response {
    let text = |name: &str| headers.get(name).map_or(String::new(), |value| value.to_str().unwrap().to_owned());
    let mood = {
        let mut inside = inside.lock().unwrap();
        inside.open += 1;
        inside.most = inside.most.max(inside.open);
        let mood = inside.mood.clone();
        if matches!(mood, Mood::Later(_)) {
            inside.mood = Mood::Accept;
        }
        let (key, authorization) = (text("idempotency-key"), text("authorization"));
        inside.asked.push(Asked {
            at: Instant::now(),
            form,
            key,
            authorization,
            accepted: matches!(mood, Mood::Accept | Mood::Slow(_)),
        });
        mood
    };
    let _open = Open(inside);
    match mood {
        Mood::Accept => (StatusCode::CREATED, r#"{"sid":"SM1","status":"queued"}"#).into_response(),
        Mood::Refuse(status, body) => (StatusCode::from_u16(status).unwrap(), body).into_response(),
        Mood::Later(pause) => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", pause)], "{}").into_response(),
        Mood::Slow(pause) => {
            tokio::time::sleep(pause).await;
            (StatusCode::CREATED, r#"{"sid":"SM1","status":"queued"}"#).into_response()
        }
        Mood::Hang => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            StatusCode::GATEWAY_TIMEOUT.into_response()
        }
    }
}

/// An SMS relay of `public.bookings`, which has a column `phone`; `more` is added to its sink.
pub fn sms_relay(name: &str, gateway: &Gateway, more: &str) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
         [relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"{}\"\naccount_sid = \"AC1\"\nauth_token = \"hunter2\"\n\
         from = \"+15550000000\"\nto = \"{{{{ phone }}}}\"\ntext = \"Booking {{{{ id }}}} confirmed\"\n{more}\n",
        gateway.url
    )
}
