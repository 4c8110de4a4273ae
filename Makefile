# Everything one does with the platform from a checkout. Needs Go; the tests also need Node.js 20 or later, the aws CLI, moto's server and Terraform.
# `make` alone tells what there is.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

# Arguments of the platform, for make run; of the demonstration, for make chaos.
ARGS ?=
# How many packages are tested at a time: they wait for PostgreSQL, Terraform and Node.js more than they compute.
TESTS ?= 3
# How long make fuzz spends on each fuzz test.
FUZZTIME ?= 1m
# Which benchmarks make bench runs.
BENCH ?= .

LINT := dist/tools/golangci-lint-2.15.0

.PHONY: help run test test-long chaos tamper fuzz build image lint bench rehearse clean

help: ## Tell what there is
	@echo 'make run        for example: make run ARGS=--once'; echo
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name text; do printf '  %-10s  %s\n' "$$name" "$$text"; done

# Each step that may be silent for long says so first. The shell becomes the platform, so that Ctrl-C reaches it.
run: ## Run the whole platform on this machine and hold a first conversation with it (Ctrl-C stops it)
	@echo 'fetching modules …'
	@go list -deps ./cmd/local >/dev/null
	@echo 'building … (the first time takes a few minutes)'
	@go build -v -buildvcs=false -o dist/local ./cmd/local 2>&1 | { n=0; while IFS= read -r line; do \
	  if [[ $$line == *[\ :]* ]]; then echo "$$line" >&2; elif (( ++n % 100 == 0 )); then echo "  $$n packages …"; fi; done; }
	@exec dist/local $(ARGS)

# -count=1: what these tests stand on (PostgreSQL, Node.js, the aws CLI, Terraform) is not in Go's test cache.
test: ## Check format, vet and run all tests
	@echo 'gofmt'; bad=$$(gofmt -l $$(find . -name '*.go' -not -path '*/node_modules/*')); [[ -z $$bad ]] || { echo "not formatted: $$bad"; exit 1; }
	go vet -tags long ./...
	go test -count=1 -vet=off -p $(TESTS) -timeout 10m ./...

# Long tests are those of *_long_test.go. WHOLE are packages all of whose tests take longer with the tag; they wait more than they compute, so they are tested beside the
# others. The race detector has everything but the packages of test/, which look at the platform from outside, most of them at its processes: test/workflow
# runs the workflow engine in its own.
LONG_TESTS   := grep -rhoE --include='*_long_test.go' --exclude-dir=node_modules '^func Test[A-Za-z0-9]+' . | sed 's/func //; /^TestMain$$/d' | paste -sd'|'
LONG_FOLDERS := find . -name '*_long_test.go' -not -path '*/node_modules/*' -printf '%h\n' | sort -u
WHOLE        := ./pkg/audit/ledger ./test/tamper
LONG         := go test -tags long -vet=off -count=1 -timeout 45m
test-long: ## Run what make test leaves out: the long tests, the race detector, fuzzing
	@tests=$$($(LONG_TESTS)); [[ -n $$tests ]]; folders=$$($(LONG_FOLDERS) | grep -vxF "$$(printf '%s\n' $(WHOLE))"); set -x; \
	  $(LONG) $(WHOLE) & $(LONG) -run "^($$tests)$$" $$folders || failed=$$?; wait $$! && exit $${failed:-0}
	go test -race -vet=off -count=1 -p $(TESTS) -timeout 45m $$(go list ./... | grep -v /test/) ./test/workflow
	@$(MAKE) fuzz FUZZTIME=10s

chaos: ## Kill the platform over and over under conversations, and count what became of them (about 2 minutes; ARGS='-for 10m -seed 1')
	@mkdir -p dist/chaos
	@echo 'building … (the first time takes a few minutes)'
	@go build -buildvcs=false -o dist/chaos/ ./test/fault ./cmd/audit-verifier
	@exec dist/chaos/fault $(ARGS)

tamper: ## Cheat in each way 60 times, and in 600 worlds not at all; print what caught it (under 30 minutes)
	@mkdir -p dist
	go test -count=1 -timeout 60m ./test/tamper -args -trials 60 -clean 600 -table '$(CURDIR)/dist/tamper.md'
	@cat dist/tamper.md

# Before Go 1.27, fuzztime that ends in the middle of an input sometimes fails with "context deadline exceeded" (golang/go#75804). A real
# failure leaves its input under testdata and says so.
fuzz: ## Fuzz every fuzz test for FUZZTIME
	@mkdir -p dist
	@grep -rEo --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9]+' . | while IFS=: read -r file name; do \
	  echo "fuzz $${name#func } of $$(dirname "$$file") for $(FUZZTIME)"; \
	  go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname "$$file")" </dev/null 2>&1 | tee dist/fuzz.log || \
	    { grep -q '^ *context deadline exceeded$$' dist/fuzz.log && ! grep -q 'Failing input written' dist/fuzz.log; }; \
	done

build: ## Build every function for Lambda: dist/<name>.zip, the same bytes each time; and dist/audit-verifier
	go run -buildvcs=false ./cmd/pack
	CGO_ENABLED=0 go build -buildvcs=auto -trimpath -o dist/audit-verifier ./cmd/audit-verifier

image: ## Make the runtime container's image, dist/agent-runtime.tar; with PUSH=registry/repository:tag, push it
	go run -buildvcs=false ./cmd/image $(if $(PUSH),-push '$(PUSH)')

lint: $(LINT) ## Run golangci-lint
	$(LINT) run --timeout 15m ./...

$(LINT):
	@echo 'building golangci-lint 2.15.0 … (once)'
	@GOBIN='$(CURDIR)/dist/tools' go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	@mv dist/tools/golangci-lint $@

bench: ## Measure speed, against a raw floor in the same run
	go test ./test/bench -run '^$$' -bench '$(BENCH)' -skip Start -benchtime 5000x -timeout 30m
	go test ./test/bench -run '^$$' -bench '^BenchmarkStart$$' -benchtime 5x
	go test ./pkg/workflow/asl ./pkg/local/workflow ./pkg/local/clock -p 1 -run '^$$' -bench '$(BENCH)' -benchtime 2000x -timeout 30m

rehearse: ## Deploy all tiers of infra/ to a stand-in for AWS (moto), show figures and what it cannot do, destroy them; KEEP=1 waits before
	@go run -buildvcs=false ./test/rehearse -plugin-dir '$(TF_PLUGIN_DIR)' $(if $(KEEP),-keep)

clean: ## Remove what was built; the platform's data in .local stays
	rm -rf dist test/*/node_modules test/appsync/simulator/node_modules
