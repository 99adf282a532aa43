# Plimsoll. `make` is the loop of every day; `make test` is what CI runs. `make help` lists the rest.

SHELL   := /bin/bash
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# All is compiled alike, so that the compiler's cache holds one of each package, and without DWARF, which no binary here keeps.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false)
# The compiler does not collect its garbage, as long as it is small.
COMPILE := CGO_ENABLED=0 GOGC=off GOMEMLIMIT=2GiB
# Where the programs of `make build` go. The binary is static: it runs on any Linux of its architecture.
BIN     := bin/plimsoll
# The image of `make image`: the name that the chart asks for, unless told otherwise.
IMAGE   := plimsoll.invalid/plimsoll:$(shell awk '$$1 == "appVersion:" {gsub(/"/, "", $$2); print $$2}' deploy/helm/plimsoll/Chart.yaml)

# The tests take what `make build` leaves. Where it is not made first, they build what they need.
test test-kernel test-kube test-flaky: export PLIMSOLL_BINARY := $(CURDIR)/$(BIN)

.DEFAULT_GOAL := all
.PHONY: all help setup build image manifests demo test test-lint test-unit test-sim test-page test-kernel test-browser test-vm test-kube test-demo test-labs test-soak-short \
        test-flaky test-long soak bench bench-model bench-reaction bench-hostile bench-start bench-demo bench-kube bench-peers bench-record kernels generate figures lint fmt fuzz clean

all: lint build test-unit ## lint, build and unit tests (the default)

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / {sub(/: test-%/, "", $$1); if (length($$1) > 16) $$1 = $$1 "\n                  "; printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what the tests need (Debian, root); nothing happens when it is there
	@bash test/setup.sh

build: ## one static binary, bin/plimsoll, its name as a plugin of kubectl, and bin/plimsoll-lease
	$(COMPILE) go build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/plimsoll
	$(COMPILE) go build -ldflags '$(LDFLAGS)' -o $(dir $(BIN))plimsoll-lease ./cmd/plimsoll-lease
	ln -sf $(notdir $(BIN)) $(dir $(BIN))kubectl-plimsoll

image: build ## bin/plimsoll-image.tar, an OCI archive for amd64 and arm64, without registry or engine; IMAGE=REPOSITORY:TAG; and what is in it and in bin/plimsoll (CycloneDX)
	deploy/image.sh $(IMAGE) bin/plimsoll-image.tar
	cd deploy/tools && go run ./sbom -version $(VERSION) -o ../../$(BIN).cdx.json ../../$(BIN)

manifests: ## lint the Helm chart and render deploy/manifests from it
	cd deploy/tools && go run ./manifests ../helm/plimsoll ../manifests

demo: build ## a real service at half a CPU, without and with Plimsoll (root); options: DEMO_ARGS='--seconds 10'
	$(BIN) demo $(DEMO_ARGS)

test: setup build ## all that CI runs, tier by tier, with a table at the end
	@bash test/tiers.sh --beside vm --beside 'lint page kernel-parts unit sim' kube kernel-agents demo soak-short

test-kernel test-demo test-labs test-soak-short: build
test-lint test-unit test-sim test-page test-kernel test-browser test-demo test-labs test-soak-short: test-%: ## one tier (unit needs Go and gcc; kernel, browser, demo, labs and soak-short need root)
	@bash test/tiers.sh $*

test-vm: build ## the contract with each kernel, in VMs: 5.10 (cgroup v1), 6.1, 6.12, 6.18 (also sched_ext), 7.0, 7.3
	@bash test/tiers.sh vm

test-kube: build ## a real API server, kubelet and containerd; minutes, and more the first time (root)
	@bash test/tiers.sh kube

test-flaky: build ## a tier N times beside a CPU load, with what failed at least once by name: make test-flaky N=10 TIER=kernel
	@bash test/flaky.sh "$(N)" "$(TIER)"

test-long: build ## 10,000 simulated machines, an hour of soak, 10,000 starts of containers, the image twice from nothing, the kernel tests that measure time, an old Kubernetes, a kubelet with the systemd driver on cgroup v2, core scheduling, all tests on every kernel, arm64, five minutes of a kubelet, the page in a browser, the experiments, short and at full length, the cost of the agent, fuzzing; hours
	@bash test/setup.sh arm64
	@bash test/tiers.sh trial-long soak starts image kernel-long kube-old kube-systemd kube-long vm-all vm-scx vm-arm64 vm-core browser browser-long labs labs-long bench bench-model bench-reaction bench-hostile bench-start bench-demo fuzz

soak: build ## 250 containers that come and go, an API server that fails, and an agent that is killed each minute: nothing grows, no limit is lost (root); SECONDS=3600
	@SOAK_SECONDS=$(or $(SECONDS),3600) bash test/tiers.sh soak

bench: build ## what the agent costs: CPU, memory and turn time on 110 pods, and beside 1,000 and 3,000 idle ones (root, 15 minutes)
	@bash test/tiers.sh bench

bench-reaction: build ## how long throttles last with throttle events, beside an agent that polls (root, 6 minutes)
	@bash test/tiers.sh bench-reaction

bench-hostile: build ## how soon throttles are ended beside hanging services, hostile tenants, full and slow disks (root, 5 minutes)
	@bash test/tiers.sh bench-hostile

bench-start: build ## how long a JVM takes until it is ready: with its limit, beside the agent, unlimited (root, java)
	@bash test/tiers.sh bench-start

bench-model: ## the load line's model: published cells, figures of docs/MODEL.md, speed beside numpy and numba (python3, PyPI)
	@bash test/tiers.sh bench-model

bench-demo: build ## the demo with 3,000 requests a mode, on a quiet machine and on a full one (root, 2 hours)
	@bash test/tiers.sh bench-demo

bench-peers: build ## koordlet and Plimsoll, and limits raised and removed, on the same kubelet, pod and load: the table of docs/COMPARISON.md (root, 10 minutes, and koordlet's build the first time); PEERS=short: 3 minutes
	@bash test/tiers.sh bench-peers

bench-record: ## the flight recorder: bytes and CPU time a period, beside an array of numpy; DuckDB and pyarrow read it (python3, PyPI)
	@bash test/tiers.sh bench-record

bench-kube: ## the published apache-demo in a pod on a real kubelet, all policies, as the published tables (root, 12 minutes); APACHE_SECONDS=120
	@bash test/tiers.sh bench-kube

fuzz: ## every fuzz test for a while; FUZZTIME=30s
	@bash test/tiers.sh fuzz

kernels: build ## docs/KERNELS.md: which kernel has what, by what doctor says on each (root, QEMU)
	@bash test/vm/features.sh

generate: ## the eBPF programs from their C source (clang-19, see make setup)
	go generate ./internal/probe/... ./internal/scx/...

figures: ## draw docs/figures anew, from the model
	go run ./lab/figures docs/figures

lint: ## gofmt, go vet, staticcheck, scripts' syntax, arm64 build, generated files, the image twice, govulncheck
	@bash test/lint.sh

fmt: ## gofmt what needs it
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')

clean: ## remove what was built and downloaded here
	rm -rf bin .cache
