# `make help` lists the commands. All of them work from a fresh checkout.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_LINT_VERSION := v2.15.0
FUZZTIME ?= 10s
BENCHTIME ?= 200ms

# Modules whose tests run; tools and bench stay outside the workspace.
MODULES := $(shell find . -name go.mod -not -path './tools/*' -not -path './bench/*' -printf '%h\n' | sort)

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: test
test: ## run the tests of every module of the workspace
	go test work

.PHONY: race
race: ## the same under the race detector, in the short form
	go test -short -race work

.PHONY: modules
modules: ## each module on its own, without the workspace: tidy, vet, tests
	@for m in $(MODULES) ./bench/report; do echo "-- $$m"; (cd $$m && GOWORK=off go mod tidy -diff && GOWORK=off go vet ./... && GOWORK=off go test -short ./...); done

.PHONY: lint
lint: ## formatting, vet, linters, and who may import whom
	@command -v golangci-lint >/dev/null || { echo "go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)"; exit 1; }
	@for m in $(MODULES) ./bench/report; do echo "-- $$m"; (cd $$m && GOWORK=off golangci-lint run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...); done

.PHONY: generate
generate: ## regenerate internal/api from openapi.yaml
	@mkdir -p internal/api/server
	cd tools && for c in models client server; do GOWORK=off go tool oapi-codegen -config $$c.yaml ../openapi.yaml; done

.PHONY: deps
deps: ## the modules a user of the client inherits; fails on one too many
	@cd tools && GOWORK=off go run ./deps

.PHONY: api
api: ## write the exported API of the client to api/memwrite.txt
	MEMWRITE_UPDATE_API=1 go test . -run '^TestExportedAPI$$' -count=1

.PHONY: bench
bench: ## what a call costs beside net/http by hand, then the benchmarks briefly (BENCHTIME=200ms)
	@go test ./internal/bench -run '^TestFigures$$' -count=1 -v -rounds 15 | grep -E '^(figure|ok|FAIL|panic)'
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for a while (FUZZTIME=10s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
	  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$$file" | cut -d' ' -f2 | while read -r target; do \
	    echo "-- $$(dirname "$$file") $$target"; \
	    go test "$$(dirname "$$file")" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) </dev/null; \
	  done; done

.PHONY: quickstart
quickstart: ## write the support notes through faults, and count them
	go run ./examples/quickstart

.PHONY: outage
outage: ## what an outage does to a server and to the calls of 1,000 callers
	@go test ./internal/outage -run '^TestFigures$$' -count=1 -v -callers 1000 | grep -E '^(figure|ok|FAIL|panic)'

.PHONY: waiting
waiting: ## what waiting for 20,000 events costs in time and in requests
	@go test ./internal/waiting -run '^TestFigures$$' -count=1 -v -events 20000 | grep -E '^(figure|ok|FAIL|panic)'

.PHONY: workers
workers: ## each broker: 500 records, redelivered, through five SIGKILLs and a service in trouble
	@short=0; for m in contrib/*worker; do \
	  (cd $$m && MEMWRITE_DRILL=full go test . -run '^TestDrill' -count=1 -parallel 1 -v | { grep -E '^(broker=|ok|FAIL|panic|---|    [a-z]+\.go)' || true; }) || short=1; \
	done; exit $$short

.PHONY: conform-mutants
conform-mutants: ## break one promise of a server at a time: each is caught by its own check alone
	@go test ./conformance -run '^TestEveryBrokenPromiseIsCaughtByItsCheckAlone$$' -count=1 -v | grep -E '^(broken=|ok|FAIL|panic|    )'

SEED ?= 0
SCHEDULES ?= 0
# What the simulation and the mutants run on: memory or sqlite.
STORE ?= memory
SIMULATE = $(if $(filter sqlite,$(STORE)),./server/internal/simulate/run,./internal/sim/simulate)

.PHONY: sim
sim: ## lives full of faults, one runnable at a time (STORE=memory or sqlite; SCHEDULES=100000 from a base SEED; SEED=n alone replays that one and shrinks it)
	@go run $(SIMULATE) -seed $(SEED) -schedules $(SCHEDULES) $(SIMFLAGS)

.PHONY: sim-replay
sim-replay: ## twenty seeds, each lived through 100 times: equal logs
	@go run $(SIMULATE) -seed $(SEED) -replay 100

.PHONY: mutants
mutants: ## put one deliberate fault after the other into the source: the simulation finds each by the invariant it breaks (STORE=memory or sqlite)
	@go run ./internal/sim/mutants -store $(STORE) $(MUTANTFLAGS)

.PHONY: fidelity
fidelity: ## write docs/fidelity.md: what the suite sees of the reference server, beside the live services
	MEMWRITE_UPDATE_FIDELITY=1 go test ./conformance -run '^TestTheFidelityPageIsWhatTheSuiteSees$$' -count=1

.PHONY: linear
linear: ## histories of servers under load, kill and restart, for each store, checked for linearizability
	@cd server && go test ./internal/linear -count=1 -v -histories 24 -timeout 20m | grep -E '^(store=|wrong=|ok|FAIL|panic|    )'

.PHONY: ingest
ingest: ## 100,000 lines into memwrite serve, through two SIGKILLs
	@cd server && go test ./cmd/memwrite -run '^TestIngestSurvivesKills$$' -count=1 -v -timeout 20m -lines 100000 | grep -E '^(figure|ingest|ok|FAIL|panic|    [a-z_]+\.go)'

.PHONY: ci
ci: ## everything a change must pass
	bash .ci/run

.PHONY: serverbench
serverbench: ## what a write costs on the reference server, with a million tasks stored
	@go test ./internal/serverbench -run '^TestFigures$$' -count=1 -v -rounds 5 -full | grep -E '^(figure|ok|FAIL|panic)'

bench: serverbench

.PHONY: e2e
e2e: ## drive the inspector in a browser, with 100,000 writes stored, and take its screenshots
	@cd e2e && go test . -count=1 -v -timeout 30m -full -pictures "$(CURDIR)/docs/images" | grep -vE '^(=== |    --- )'

ROUNDS ?= 50
.PHONY: crash
crash: ## kill servers at random and at each named point, one on SQLite and three on PostgreSQL, which is killed too, and count what was lost (ROUNDS=50)
	@go test ./server/internal/crash -run '^TestCrash' -count=1 -v -timeout 20m -rounds $(ROUNDS) | grep -E '^(store=|ok|FAIL|panic)|crash_test'

# What bench-report runs: each prints figures.
REPORTED ?= bench outage waiting bench-store e2e

.PHONY: bench-report
bench-report: ## run the benchmarks and write docs/benchmarks.md with their figures and plots (half an hour)
	@dir=$$(mktemp -d); for t in $(REPORTED); do echo "-- $$t"; $(MAKE) --no-print-directory $$t | tee $$dir/$$t.txt; done; \
	cd bench/report && GOWORK=off go run . -out ../../docs $$dir/*.txt

.PHONY: bench-store
bench-store: ## what the durable stores do beside peers, with a million tasks waiting
	@short=0; for store in SQLite Postgres; do \
	  (cd bench && GOWORK=off go test . -run "^Test$$store.*Figures$$" -count=1 -v -rounds 5 -full -timeout 30m | grep -E '^(figure|ok|FAIL|panic)|_test.go') || short=1; \
	done; exit $$short

.PHONY: bench-module
bench-module: ## the module of the benchmarks, on its own
	@cd bench && GOWORK=off go mod tidy -diff && GOWORK=off go vet ./...
