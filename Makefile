# Everything runs through cargo; make only installs what is missing first. `make` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help deps deps-demo deps-test deps-lint demo test lint bench

# Options of the demo, for example: make demo ARGS="--seconds 60 --json"
ARGS ?=
# real: start an Apache Kafka broker for the demo; HOST:PORT: use that one. Empty: librdkafka's in-process broker.
KAFKA ?=

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## Install what the build needs (Debian: by apt, as root or with sudo)
	@scripts/install build

deps-demo:
	@scripts/install build postgres $(if $(filter real,$(KAFKA)),kafka)
	@$(if $(filter real,$(KAFKA)),scripts/kafka-jars,:)

deps-test:
	@scripts/install build postgres kafka tests
	@scripts/kafka-jars

demo: deps-demo ## Three replicas survive a kill with nothing lost; ARGS="--seconds 20 --json", KAFKA=real
	@cargo run --bin outbox-relay -- demo $(if $(KAFKA),--kafka $(KAFKA)) $(ARGS)

test: deps-test ## Run all tests, on a real PostgreSQL and a real Apache Kafka
	cargo test; status=$$?; scripts/settle; exit $$status

deps-lint:
	@scripts/install build lint

lint: deps-lint ## Formatting, clippy and documentation, all warnings denied; manifests, Dockerfile, Compose file
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --lib
	scripts/lint-deploy

bench: deps-test ## Measure against the raw limits of this machine; writes target/bench.json; ARGS=--quick
	cargo bench --bench relay -- $(ARGS)
