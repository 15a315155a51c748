//! Sessions that are being opened: a client that has not proved who it is writes nothing, and a login trigger may.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional, duplex};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use super::ROLES;
use crate::support::{Database, NOW, Reader, bookings, database, ordered};

const NONE: [&str; 0] = [];

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// A session of `app` that the server has asked for a proof, and that gives none yet.
struct Opening {
    go_on: oneshot::Sender<()>,
    session: JoinHandle<Client>,
}

impl Opening {
    async fn begin(database: &Database) -> Self {
        let mut server = TcpStream::connect(("127.0.0.1", database.postgres.port())).await.unwrap();
        let (client, mut inside) = duplex(8_192);
        let (asked, was_asked) = oneshot::channel();
        let (go_on, may_go_on) = oneshot::channel();
        tokio::spawn(async move {
            let mut startup = [0; 1_024];
            let length = inside.read(&mut startup).await.unwrap();
            server.write_all(&startup[..length]).await.unwrap();
            let kind = server.read_u8().await.unwrap();
            asked.send(kind).unwrap();
            may_go_on.await.unwrap();
            inside.write_u8(kind).await.unwrap();
            // Either side may leave when the test has ended.
            let _ = copy_bidirectional(&mut inside, &mut server).await;
        });
        let config: tokio_postgres::Config = database.url("app").parse().unwrap();
        let session = tokio::spawn(async move {
            let (session, connection) = config.connect_raw(client, NoTls).await.unwrap();
            tokio::spawn(connection);
            session
        });
        assert_eq!(was_asked.await.unwrap(), b'R', "it asks for a proof");
        Self { go_on, session }
    }

    async fn end(self) -> Client {
        self.go_on.send(()).unwrap();
        self.session.await.unwrap()
    }
}

// Guarantee: horizon.sign-in
#[tokio::test]
async fn session_that_signs_in_holds_nothing() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, NOW).await;
        // One is there when the first scan is made, one comes later.
        let first = Opening::begin(&database).await;
        let reader = Reader::new(&database, role).await.window(Duration::ZERO).await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        assert_eq!(reader.settled(&[1]).await.horizon.held_by, [], "{role}");
        let second = Opening::begin(&database).await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        assert_eq!(reader.settled(&[1, 2]).await.horizon.held_by, [], "{role}");
        for opening in [first, second] {
            run(&opening.end().await, "INSERT INTO bookings DEFAULT VALUES").await;
        }
        reader.expect(&[1, 2, 3, 4]).await;
    }
}

// Guarantee: horizon.sign-in
/// Its `now()` is the instant at which the session was begun, before the client proved who it is.
#[tokio::test]
async fn login_trigger_of_session_that_signs_in_holds() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, NOW).await;
        run(
            &owner,
            "CREATE FUNCTION logged() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF session_user = 'app' THEN INSERT INTO public.bookings (customer) VALUES ('login'); END IF; END $$",
        )
        .await;
        let created = owner.batch_execute("CREATE EVENT TRIGGER logged ON login EXECUTE FUNCTION logged()").await;
        let version: i32 =
            owner.query_one("SELECT current_setting('server_version_num')::integer", &[]).await.unwrap().get(0);
        if version < 170_000 {
            let error = created.unwrap_err();
            assert_eq!(error.as_db_error().unwrap().message(), "unrecognized event name \"login\"");
            return;
        }
        created.unwrap();
        let reader = Reader::new(&database, role).await.window(Duration::ZERO).await;
        reader.settled(&NONE).await;
        let opening = Opening::begin(&database).await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        let held_by = reader.settled(&NONE).await.horizon.held_by;
        // Others of the server may be opened now, and none says yet of which database it is.
        assert!(!held_by.is_empty(), "{role}");
        opening.end().await;
        let expected = ordered(&owner, "bookings").await;
        assert_eq!(expected, ["2", "1"], "{role}: the trigger's row has the time of before");
        reader.expect(&expected).await;
    }
}
