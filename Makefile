# What there is to do here: `make help`. Tools are pinned and installed into .tools/ of this
# folder by the targets that need them; nothing else on the machine is touched.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The lanes of `make test`, fastest first. A test file names its lane by a build tag (CONTRIBUTING.md).
LANES ?= unit race sim emulator docker infra package e2e clients
# Architectures that `make build` builds for.
ARCHS ?= amd64 arm64
# Extra arguments: of go test for the test targets (ARGS='-run Stop -v'), of cdk for synth and deploy.
ARGS ?=

TOOLS := $(CURDIR)/.tools
CDK := $(TOOLS)/node/node_modules/.bin/cdk
TAGS := sim,emulator,docker,package,e2e,clients,soak

export GOLANGCI_LINT_CACHE := $(TOOLS)/cache/golangci-lint
export CDK_DISABLE_CLI_TELEMETRY := true
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export NODE_NO_WARNINGS := 1

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nSettings of local-up and demo: AGENTS=2 HEARTBEAT=5s SUSPECT_AFTER=20s REAP_AFTER=90s CLEANUP_WAIT=1s PORT=4566 LOG_LEVEL=debug\n'
	@printf 'Settings of others: LANES="%s" ARCHS="%s" ARGS="…"\n' "$(LANES)" "$(ARCHS)"

##@ Prove

.PHONY: test
test: check $(addprefix test-,$(LANES)) ## check, and all ordinary lanes
	@echo "== all green: check $(LANES)"

.PHONY: check
check: fmt-check vet lint house licences ## format, vet, lint, house rules, licences: no test of behaviour

.PHONY: test-unit
test-unit: need-go ## pure packages and fakes: seconds
	@tools/lane unit $(ARGS)

.PHONY: test-race
test-race: need-go need-cc ## the same of the concurrent rooms, under the race detector
	@tools/lane race $(ARGS)

.PHONY: test-sim sim
sim: test-sim
test-sim: need-go ## every interleaving of the use cases within a bound, 200 seeds of the whole system, every planted mistake caught: 6 min
	@tools/lane sim $(ARGS)

.PHONY: sim-four
sim-four: need-go ## any four operations at once, from every start and to the end: a quarter of an hour on two processors
	@tools/lane sim-four $(ARGS)

.PHONY: test-emulator
test-emulator: need-go tools-python ## adapters against the AWS emulator
	@tools/lane emulator $(ARGS)

.PHONY: test-docker
test-docker: need-go need-docker need-busybox need-network tools-python ## adapters against a real Docker engine
	@tools/lane docker $(ARGS)

.PHONY: test-infra
test-infra: need-go need-node ## the synthesized stack: references, least privilege, cdk-nag
	@tools/lane infra $(ARGS)

.PHONY: test-package
test-package: need-docker need-busybox need-systemd need-rpm need-shellcheck tools-python tools-node tools-nfpm build-here ## deb and rpm on machines that run systemd, with a task running; as root
	@tools/lane package $(ARGS)

.PHONY: test-e2e
test-e2e: need-docker need-busybox need-network tools-python tools-node build-here ## the whole on the emulator with real agents and a real Docker engine
	@tools/lane e2e $(ARGS)

.PHONY: test-clients
test-clients: need-docker need-busybox need-aws2 tools-python tools-node tools-clients build-here ## stock clients against a local stack: SDKs, AWS CLIs, a deploy tool, Airflow
	@tools/lane clients $(ARGS)

# LONGSHORE_EMULATOR=endpoint or aws runs the same lane on what is there already (docs/design/emulators.md).
.PHONY: test-localstack
test-localstack: need-docker need-busybox $(if $(filter endpoint aws,$(LONGSHORE_EMULATOR)),,tools-localstack) tools-python tools-node build-here ## suites and the main job once more, on LocalStack
	@tools/lane localstack $(ARGS)

.PHONY: soak
soak: need-docker need-busybox need-cc tools-python tools-node build-here ## the long forms: many random walks, 5,000 seeds of the whole system, a quarter of an hour of chaos, reports held back for ten minutes, Docker killed under its tasks
	@tools/lane soak $(ARGS)

.PHONY: fuzz
fuzz: need-go ## every decoder, FUZZTIME (10s) each; ARGS=wire for some of them
	@tools/fuzz $(ARGS)

.PHONY: bench-control
bench-control: need-go ## what the control plane costs, to 10,000 instances and 100,000 tasks; placement beside swarmkit's: 5 min
	@go run ./bench/control -placement $(ARGS)

.PHONY: bench-agent
bench-agent: need-docker need-busybox build-here ## command received → container running, beside a bare loop of Docker calls and Docker Swarm: 10 min
	@go run ./bench/agent -agent "dist/agent/$$(go env GOARCH)/longshore-agent" $(ARGS)

.PHONY: fmt
fmt: need-go ## format all Go files
	@gofmt -w -s $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: fmt-check
fmt-check: need-go
	@bad=$$(gofmt -l -s $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then printf 'not formatted:\n%s\nmend: make fmt\n' "$$bad" >&2; exit 1; fi
	@echo "== format: ok"

.PHONY: vet
vet: need-go
	@echo "== vet (compiles everything, with the CDK about 3 min the first time)"
	@go vet -tags $(TAGS) ./...

.PHONY: lint
lint: tools-golangci
	@echo "== lint"
	@$(TOOLS)/bin/golangci-lint run --build-tags $(TAGS) $(ARGS)

.PHONY: house
house: need-go
	@echo "== house rules"
	@go test -count=1 .

.PHONY: licences
licences: need-go ## are all modules under a licence that is allowed? ARGS=-write writes THIRD_PARTY.md
	@go run ./test/licence/cmd -tags $(TAGS) $(ARGS)

.PHONY: vuln
vuln: need-go tools-vuln ## known vulnerabilities of what is compiled; needs https://vuln.go.dev, or VULNDB=file:///a/copy
	@$(TOOLS)/bin/govulncheck -tags $(TAGS) -db "$${VULNDB:-https://vuln.go.dev}" ./edgeagent ./lambdas/... ./cli ./infra || { code=$$?; [ $$code = 3 ] || \
	  echo "govulncheck needs its database: https://vuln.go.dev, or a copy of it as VULNDB=file:///a/copy" >&2; exit $$code; }

##@ Build

.PHONY: build
build: need-go ## functions into dist/lambda/ARCH, agent into dist/agent/ARCH, longshore into dist/cli/ARCH
	@tools/build $(ARCHS)

# Generated pages are written, and compared, by the tests of the tables they show.
GENERATED = $$(git grep -l --untracked '"update-docs"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: gen
gen: need-go ## write the pages of docs that show tables and commands of the code
	@go test -count=1 -run TheDocs $(GENERATED) -update-docs
	@git status --short docs

.PHONY: gen-check
gen-check: need-go ## are those pages up to date? (test-unit asks it too)
	@go test -count=1 -run TheDocs $(GENERATED)

.PHONY: build-here
build-here: need-go
	@tools/build "$$(go env GOARCH)"

.PHONY: package
package: need-go tools-nfpm ## deb and rpm of the agent into dist/package
	@ONLY=agent tools/build $(ARCHS)
	@tools/package $(ARCHS)

.PHONY: proxy-image
proxy-image: need-docker build-here ## the image longshore-proxy, which re-signs for stock clients
	@docker build -q -t longshore-proxy -f packaging/proxy/Dockerfile "dist/cli/$$(go env GOARCH)"

.PHONY: tools
tools: tools-python tools-node tools-clients tools-golangci ## install every pinned tool into .tools

.PHONY: clean
clean: ## remove what was built; .tools stays
	rm -rf dist cdk.out

##@ Run here

.PHONY: demo
demo: local-ready need-docker need-busybox tools-python tools-node build-here ## a task's whole life on a local stack, then all gone
	@go run ./test/local/cmd demo

.PHONY: local-up
local-up: local-ready need-docker need-busybox tools-python tools-node build-here ## emulator, CDK stack and AGENTS agents; .local/env for your shell
	@go run ./test/local/cmd up

.PHONY: local-ready
local-ready: need-go
	@go run ./test/local/cmd ready

.PHONY: local-down
local-down: need-go ## end it; leaves no container, process or queue
	@go run ./test/local/cmd down

.PHONY: local-tick
local-tick: need-go ## run the reaper of the local stack now
	@go run ./test/local/cmd tick

.PHONY: local-audit
local-audit: need-go ## recompute every ledger of the local stack from its tasks
	@go run ./test/local/cmd audit

##@ Deploy

.PHONY: synth
synth: need-go tools-node ## write the CloudFormation template into cdk.out; needs no account
	@$(CDK) synth --quiet $(ARGS)

.PHONY: deploy
deploy: need-go tools-node ## deploy the stack to the AWS account of your environment
	@$(CDK) deploy $(ARGS)

# Not listed: what the targets above stand on.

.PHONY: tools-python tools-node tools-clients tools-localstack tools-golangci tools-nfpm tools-vuln
tools-vuln: need-go
	@tools/install vuln
tools-python: need-python
	@tools/install python
tools-node: need-node
	@tools/install node
tools-clients: need-python need-node
	@tools/install clients
tools-localstack: need-python
	@tools/install localstack
tools-golangci: need-go
	@tools/install golangci
tools-nfpm: need-go
	@tools/install nfpm

.PHONY: need-go need-node need-python need-docker need-busybox need-cc need-aws2 need-network need-systemd need-rpm need-shellcheck
need-go need-node need-python need-docker need-busybox need-cc need-aws2 need-network need-systemd need-rpm need-shellcheck: need-%:
	@tools/check $*
