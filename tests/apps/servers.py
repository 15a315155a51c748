"""A PostgreSQL and an Apache Kafka on the loopback interface, for as long as this process lives."""

import contextlib
import ctypes
import glob
import os
import pathlib
import pwd
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import psycopg
from confluent_kafka.admin import AdminClient, NewTopic

KAFKA = """\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""


class Failed(Exception):
    """What is wrong, for people."""


def free_port(given: set[int] = set()) -> int:
    """A port that the system does not hand out by itself, and that this process has not given out before."""
    for _ in range(100):
        port = random.randrange(15_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if port not in given:
                given.add(port)
                return port
    raise Failed("no free port on 127.0.0.1 between 15000 and 32000")


def private(file: pathlib.Path, text: str) -> pathlib.Path:
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    return file


def eventually(seconds: float, what: str, ask, alive=lambda: None):
    """What `ask` gives as soon as it raises nothing and gives something."""
    deadline, last = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        alive()
        try:
            if found := ask():
                return found
        except (psycopg.Error, OSError, Failed) as error:
            last = error
        time.sleep(0.05)
    raise Failed(f"{what}: not within {seconds:.0f} s" + (f": {last}" if last else ""))


def ends_with_us() -> None:
    """In the child: this signal when the parent ends, however it does (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


class Program:
    """A process of ours in a group of its own; leaving the context stops it, and nothing else."""

    def __init__(self, name: str, command: list, log: pathlib.Path, **options):
        self.name, self.log = name, log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                preexec_fn=ends_with_us, start_new_session=True, **options,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)

    def alive(self) -> None:
        if self.process.poll() is not None:
            raise Failed(f"{self.name} has ended with {self.process.returncode}:\n{self.tail()}")

    def wait(self, seconds: float) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} is not done in {seconds:.0f} s:\n{self.tail()}") from None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.wait(30)

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


class Postgres:
    """Asks each role for its password, also by the socket; the superuser's is random."""

    def __init__(self, stack: contextlib.ExitStack):
        found = os.environ.get("OUTBOX_RELAY_PG_BIN") or max(
            glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]), default=None
        )
        if not found or not pathlib.Path(found, "initdb").exists():
            raise Failed("PostgreSQL is missing: scripts/install postgres")
        # Root cannot run it.
        user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="outbox-apps-postgres-"))
        stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.port, self.passwords = free_port(), {"postgres": secrets.token_hex(16)}
        secret = private(self.dir / "password", self.passwords["postgres"])
        options = {}
        if user:
            options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(secret, user.pw_uid, user.pw_gid)
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        data, environment = self.dir / "data", {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        initdb = [f"{found}/initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", secret, "--no-sync"]
        done = subprocess.run([str(word) for word in initdb], cwd=self.dir, env=environment, capture_output=True, text=True, **options)
        if done.returncode:
            raise Failed(f"initdb: {done.stderr}")
        secret.unlink()
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.dir, "fsync": "off", "max_connections": 60,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        server = Program("PostgreSQL", [f"{found}/postgres", "-D", data, *words], self.dir / "log", cwd=self.dir, env=environment, **options)
        stack.push(lambda *_: server.process.poll() is None and server.stop(signal.SIGINT) and None)
        eventually(30, "PostgreSQL accepts connections", lambda: self.connect("postgres", "postgres").close() or True, server.alive)

    def url(self, user: str, scheme: str = "postgresql", password: bool = True) -> str:
        secret = f":{self.passwords[user]}" if password else ""
        return f"{scheme}://{user}{secret}@127.0.0.1:{self.port}/app?sslmode=disable"

    def connect(self, user: str, database: str = "app") -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user, password=self.passwords[user], dbname=database, autocommit=True, connect_timeout=5
        )

    def role(self, name: str) -> None:
        self.passwords[name] = secrets.token_hex(16)
        with self.connect("postgres", "postgres") as owner:
            owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{self.passwords[name]}'")


class Kafka:
    """One node, without a topic."""

    def __init__(self, stack: contextlib.ExitStack, root: pathlib.Path):
        jars = pathlib.Path(os.environ.get("OUTBOX_RELAY_KAFKA_JARS") or root / "kafka/libs")
        if not list(jars.glob("kafka_*.jar")):
            raise Failed(f"the jars of Apache Kafka are not in {jars}: scripts/kafka-jars")
        home = pathlib.Path(tempfile.mkdtemp(prefix="outbox-apps-kafka-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        port, controller = free_port(), free_port()
        self.servers = f"127.0.0.1:{port}"
        private(home / "server.properties", KAFKA.format(port=port, controller=controller, data=home / "data"))
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
        java += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars}/*"]
        node = secrets.token_urlsafe(16)
        tool = ["kafka.tools.StorageTool", "format", "--standalone", "-t", re.sub(r"^-", "A", node), "-c", "server.properties"]
        with Program("Kafka's format", java + tool, home / "format.log", cwd=home) as formatting:
            if formatting.wait(60):
                raise Failed(f"Kafka's directory cannot be formatted:\n{formatting.tail()}")
        self.server = Program("Apache Kafka", [*java, "kafka.Kafka", "server.properties"], home / "log", cwd=home)
        stack.push(lambda *_: self.server.process.poll() is None and self.server.stop() and None)

    def ready(self) -> None:
        def port() -> bool:
            with socket.create_connection(("127.0.0.1", int(self.servers.split(":")[1])), 1):
                return True

        eventually(60, "Apache Kafka listens", port, self.server.alive)

    def topic(self, name: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.create_topics([NewTopic(name, partitions, 1)], operation_timeout=20)[name].result(30)
