# Needs Go, git and make. The Go module proxy is the only thing fetched from.

BIN     := bin/connect-windowed
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.date=$(DATE)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Packages with goroutines of their own.
RACE_PKGS ?= ./cmd/... ./processors/... ./statecache/... ./windowing/host/... ./tests/ ./tests/drive/...

# Packages with tests behind the tag servers.
SERVER_PKGS ?= ./tests/kafka/... ./tests/postgres/... ./tests/examples/ ./processors/sql/

FUZZTIME     ?= 10s
SOAKTIME     ?= 5m
SOAK_RUNS    ?= 20
BENCHTIME    ?= 1s
TEST_TIMEOUT ?= 20m

.PHONY: all build run test test-race test-servers bench bench-micro bench-whole bench-kafka lint fuzz soak examples docs clean

all: build test lint

build: ## the binary, stamped with its version
	go build -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/connect-windowed

run: build ## the quick start, from an empty state folder
	rm -rf state/quickstart
	$(BIN) run --log.level warn --set http.enabled=false config/examples/quickstart.yaml

test: ## all tests
	go test -timeout $(TEST_TIMEOUT) ./...

test-race: ## the packages that have goroutines, under the race detector
	go test -race -timeout $(TEST_TIMEOUT) $(RACE_PKGS)

test-servers: ## the tests that need a Kafka broker or PostgreSQL, which they start
	go test -count=1 -tags servers -p 1 -timeout $(TEST_TIMEOUT) $(SERVER_PKGS)

examples: ## lint, test and run every example, compare what it prints
	go test -count=1 -v -timeout $(TEST_TIMEOUT) ./tests/examples/

lint: ## formatting, go vet, staticcheck
	@unformatted="$$(gofmt -l .)"; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags servers $(SERVER_PKGS)
	go run $(STATICCHECK) ./...
	go run $(STATICCHECK) -tags servers $(SERVER_PKGS)

docs: ## the pages of docs/reference, from the specs
	go run ./tests/reference docs/reference

# Minimising an interesting input takes a minute by default, longer than the run.
fuzz: ## every fuzz test for FUZZTIME
	@set -eu; for pkg in $$(go list ./...); do \
		for target in $$(go test -run '^$$' -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "fuzz $$target in $$pkg for $(FUZZTIME)"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
		done; \
	done

soak: ## the tests again and again, then long fuzzing: SOAK_RUNS, SOAKTIME
	SOAK=1 go test -count=$(SOAK_RUNS) -timeout 0 ./...
	$(MAKE) fuzz FUZZTIME=$(SOAKTIME)

bench: bench-micro bench-whole ## lines "rate <name> <events/s>" and "ratio <name> <value>" at the end

bench-micro: ## benchmarks beside the code, with allocations
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 0 ./...

bench-whole: build ## whole processes: no window, a durable window, the stock way
	BENCH_BINARY=$(BIN) go run ./tests/bench

bench-kafka: build ## the variants of bench-whole that read a topic; fails without a broker
	BENCH_KAFKA=1 BENCH_ONLY=kafka BENCH_BINARY=$(BIN) go run ./tests/bench

clean:
	rm -rf bin state
