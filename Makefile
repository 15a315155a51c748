# Everything runs through cargo; make only installs what is missing first. `make` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help deps deps-demo deps-test deps-consumers deps-lint deps-apt deps-fetch build-lint build-test demo test fuzz test-page test-incumbent test-collector test-registry test-apps test-pg lint audit bench \
    bench-compare soak test-planted test-promotions dist try-deb image try-image crates

# Options of the demo, for example: make demo ARGS="--seconds 60 --json"
ARGS ?=
# What the demo plays: bookings, reminders, requests, schedules, lanes or jobs, for example: make demo SCENARIO=reminders
SCENARIO ?=
# real: start an Apache Kafka broker for the demo; HOST:PORT: use that one. Empty: librdkafka's in-process broker.
KAFKA ?=
# The major version of PostgreSQL for test-pg: what is installed, or 16 or 18, which are inside a package.
PG ?= 18
# The guarantees that rest on PostgreSQL, by module of tests/it; the others meet it only through these.
GUARANTEES = action_query:: basics:: chaos:: faults:: horizon:: identity:: idle:: lock_kill:: losses:: migrations:: notify:: ordering:: \
    postgres_facts:: refusals:: \
    replicas:: retention:: schedules:: shards:: storm:: late_rows:: turn_progress:: parked:: filter:: lanes:: \
    stage::the_server_has_the_major_version_that_was_asked_for
# What those names contain besides, and what a broker or a receiver decides alone: the same on every PostgreSQL.
OF_OTHERS = intake:: faults::broker_killed ordering::first_request:: lanes::failures:: lanes::sinks:: lanes::kill_repeats \
    lanes::once::under_at_most_once_a_receiver late_rows::sinks:: filter::a_filtered_stream_to_kafka schedules::page:: schedules::reports:: \
    refusals::a_kafka refusals::check_without_kafka refusals::a_port
# Some of them not, for example SKIP=chaos::
SKIP ?=
# make fuzz: how long each. Its seed, where none is given, is another one each time.
MINUTES ?= 10
# make soak: how long, the seed of the first storm, how many storms; RELAY, of test-apps, too: a program to test instead of the built one.
HOURS ?= 8
SEED ?=
STORMS ?=
RELAY ?=
# make test-planted, make test-promotions: how many losses, how many kills in another run without a loss, how many promotions.
COUNT ?= 100
KILLS ?= 200
PROMOTIONS ?= 200
# What would be published, in this order. What only the repository needs is left out, and cargo says so.
CRATES = -p outbox-relay-librdkafka -p outbox-relay-rdkafka -p outbox-relay
# Tests wait for servers more than half of their time: five at a time for two cores.
export RUST_TEST_THREADS ?= $(shell echo $$(( $$(nproc) * 5 / 2 )))

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## Install what the build needs (Debian: by apt, as root or with sudo)
	@scripts/install build

deps-demo:
	@scripts/install build postgres $(if $(filter real,$(KAFKA)),kafka)
	@$(if $(filter real,$(KAFKA)),scripts/kafka-jars,:)

deps-test:
	@scripts/install build postgres kafka tests
	@scripts/kafka-jars
	@scripts/openapi-tools

deps-consumers:
	@scripts/install kafka consumers
	@scripts/consumer-kit

# All that lint, test and test-pg install, for .ci/run, beside the build: by apt in one go, and from elsewhere.
deps-apt:
	@scripts/install build lint audit rules postgres kafka tests consumers versions

deps-fetch:
	@scripts/kafka-jars
	@scripts/postgres-version $(PG) >/dev/null
	@scripts/openapi-tools
	@scripts/consumer-kit

demo: deps-demo ## Three replicas survive a kill with nothing lost; ARGS="--seconds 20 --json", KAFKA=real, SCENARIO=reminders|requests|schedules|lanes|jobs
	@cargo build --bin outbox-relay --bin outbox-demo
	@cargo run --bin outbox-demo -- $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(KAFKA),--kafka $(KAFKA)) $(ARGS)

build-test: deps
	cargo test --no-run

test: deps-test deps-consumers ## Run all tests, on a real PostgreSQL and a real Apache Kafka
	cargo test; status=$$?; scripts/settle; exit $$status

test-pg: deps-test ## Run the guarantee tests on another major version of PostgreSQL; PG=18
	@scripts/install versions
	bin=$$(scripts/postgres-version $(PG)) && \
	  OUTBOX_RELAY_PG_BIN=$$bin OUTBOX_RELAY_PG_MAJOR=$(PG) cargo test --test it -- $(GUARANTEES) $(addprefix --skip ,$(OF_OTHERS) $(SKIP)); \
	  status=$$?; scripts/settle; exit $$status

fuzz: deps-test ## Garbled files, rows, requests and answers for each reader, ten minutes each; MINUTES=1, SEED=17
	OUTBOX_RELAY_FUZZ_SECONDS=$$(($(MINUTES) * 60)) OUTBOX_RELAY_FUZZ_SEED=$(or $(SEED),$$(date +%s)) \
	  cargo test --lib --test it -- garbled --nocapture --test-threads=1; status=$$?; scripts/settle; exit $$status

test-page: ## Open the status page in Chromium: calm, held, halted; light, dark, 390 pixels wide; axe; PICTURES=docs/pictures
	@scripts/install build postgres page
	@scripts/page-kit
	cargo test --test page each_state -- --nocapture; status=$$?; scripts/settle; exit $$status

test-incumbent: ## Put a real Debezium and a window poller on trial by verify, and a converted configuration beside Debezium
	@scripts/install build postgres kafka
	@scripts/kafka-jars
	@scripts/debezium-jars
	cargo test --test incumbent debezium -- --nocapture --test-threads=1; status=$$?; scripts/settle; exit $$status

test-collector: ## Send the spans of [telemetry] to a real OpenTelemetry collector, which Go compiles first
	@scripts/install build postgres kafka
	@scripts/kafka-jars
	@scripts/collector-kit
	cargo test --test collector; status=$$?; scripts/settle; exit $$status

test-registry: ## Write records by the schemas of a real registry, which is fetched first (158 MB), with a Java if there is none
	@scripts/install build postgres kafka
	@scripts/kafka-jars
	@scripts/registry-kit
	cargo test --test registry; status=$$?; scripts/settle; exit $$status

test-apps: ## Run the applications of docs/howto/outbox.md (SQLAlchemy, Drizzle, Spring Boot) under load, and `verify`; RELAY=PATH, ARGS=--help
	@scripts/install build postgres kafka consumers apps
	@scripts/kafka-jars
	@scripts/consumer-kit
	@scripts/apps-kit
	$(if $(RELAY),,cargo build --bin outbox-relay)
	tests/apps/run $(if $(RELAY),--relay $(RELAY)) $(ARGS)

deps-lint:
	@scripts/install build lint audit rules

build-lint: deps
	cargo clippy --all-targets -- -D warnings
	@# Not among all targets, because `cargo test` leaves them out.
	cargo clippy --test page --test incumbent --test registry -- -D warnings

lint: deps-lint ## Formatting, clippy, documentation, alert rules, manifests, and what the dependencies may be; all warnings denied
	scripts/lint-rules
	scripts/kafka-bindings --check
	scripts/lint-deploy
	cargo fmt --check
	@$(MAKE) --no-print-directory build-lint
	@# This package alone: testkit and the example ask for the features, and cargo would give them to the library, too.
	cargo clippy -p outbox-relay --no-default-features --lib -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --lib -p outbox-relay
	cargo package --quiet --no-verify --allow-dirty $(CRATES)
	$$(scripts/cargo-deny) --log-level error check licenses bans sources
	@# As make dist does: every crate has a license's text.
	mkdir -p target/parts && SOURCE_DATE_EPOCH=0 scripts/parts target/parts

audit: deps ## Ask the advisory database about the dependencies; needs the network
	@scripts/install audit
	@$$(scripts/cargo-deny) --log-level error check advisories || \
	  { echo "make audit: NOT CHECKED, or an advisory was found: see above. Nothing is known to be safe." >&2; exit 1; }

bench: deps-test ## Measure against the raw limits of this machine, in about fifteen minutes; writes target/bench.json; ARGS="--quick", ARGS=--help
	cargo bench --bench relay -- $(ARGS)

bench-compare: deps-test ## Measure the usual loop (one row, one send, one UPDATE) beside the relay, over the same rows
	cargo bench --bench relay -- compare $(ARGS)

soak: ## Storms one after the other, in search of a lost row (docs/SOAK.md); HOURS=3, SEED=17 STORMS=1, RELAY=PATH, ARGS=--help
	@scripts/install build postgres kafka soak
	@scripts/kafka-jars
	$(if $(RELAY),,cargo build --release --bin outbox-relay)
	cargo bench --profile dev --bench soak -- --hours $(HOURS) $(if $(SEED),--seed $(SEED)) \
	  $(if $(STORMS),--storms $(STORMS)) $(if $(RELAY),--relay $(RELAY)) $(ARGS)

test-planted: ## Lose a hundred rows on purpose under load, then kill replicas 200 times: all found, nothing else; COUNT=, KILLS=, SEED=17, RELAY=PATH
	@scripts/install build postgres kafka
	@scripts/kafka-jars
	$(if $(RELAY),,cargo build --release --bin outbox-relay)
	cargo bench --profile dev --bench soak -- planted --count $(COUNT) $(if $(SEED),--seed $(SEED)) $(if $(RELAY),--relay $(RELAY)) $(ARGS)
	cargo bench --profile dev --bench soak -- planted --count 0 --kills $(KILLS) $(if $(SEED),--seed $(SEED)) \
	  $(if $(RELAY),--relay $(RELAY)) $(ARGS)

test-promotions: ## Promote a standby 200 times under load: nothing published is undone; PROMOTIONS=20, SEED=17, RELAY=PATH
	@scripts/install build postgres kafka
	@scripts/kafka-jars
	$(if $(RELAY),,cargo build --release --bin outbox-relay)
	cargo bench --profile dev --bench soak -- promotions --promotions $(PROMOTIONS) $(if $(SEED),--seed $(SEED)) \
	  $(if $(RELAY),--relay $(RELAY)) $(ARGS)

crates: deps ## Package the crates as for a registry, and compile them as packaged, in some ten minutes
	cargo publish --dry-run $(CRATES)

dist: ## Make what is installed, from the commit: archive, Debian package, checksums, below target/dist; TARGET=aarch64-unknown-linux-gnu
	@scripts/install build
	@scripts/dist
	@scripts/deb

image: ## Make a container image of it without a container engine, after make dist: an OCI archive below target/dist
	@scripts/install try
	@scripts/image

try-image: ## Run the image under runc: its own user, no capability, read-only, against a PostgreSQL; needs root, after make image
	@scripts/try-image

try-deb: ## Install the package in a bare Debian 12 without a compiler, with PostgreSQL and a real Kafka: rows arrive within three minutes; needs root, after make dist; PROGRAM=PATH
	@scripts/try-deb
