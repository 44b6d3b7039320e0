# Every target works in `.venv` of the project and needs only Python 3.11 or newer, make and git.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
RUN_STAMP := .venv/.run-ready
export PYTHONPATH := $(CURDIR):$(CURDIR)/layers/common/python:$(CURDIR)/client:$(CURDIR)/constructs
export MYPYPATH := layers/common/python:client:constructs
# Set by some images and CI systems; compiling everything at each start would be most of what the tests do.
export PYTHONDONTWRITEBYTECODE :=
STAGE ?= dev
PORT ?= 0
SEED ?= 1
# Seconds that all tests may take: 1,100 on two quiet cores, 1,800 were seen on a busy machine of CI. 0 is no limit.
LIMIT ?= 2400
LOCAL = --port $(PORT) $(if $(LOCAL_HOME),--home $(LOCAL_HOME)) $(if $(KEYCLOAK),--keycloak) $(if $(KUBERNETES),--kubernetes) $(if $(FAULTS),--faults $(FAULTS)) $(if $(SITE),--site $(SITE))
DOCUMENTS = $(filter-out docs/settings.md docs/security-routes.md,$(wildcard docs/*.md docs/decisions/*.md))
.DEFAULT_GOAL := help

.PHONY: help setup run serve test test-console test-keycloak test-kubernetes check synth bench soak kubernetes vault tofu prometheus cost new-provider format openapi template wheels settings docs clean

help:  ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements/dev.txt client/pyproject.toml
	@$(PYTHON) -m local.install all
	@touch $(RUN_STAMP) $(STAMP)

$(RUN_STAMP): requirements/run.txt client/pyproject.toml
	@$(PYTHON) -m local.install run
	@touch $(RUN_STAMP)

setup: $(STAMP)  ## Make the virtual environment with all that tests, checks and deployments need

run: $(RUN_STAMP)  ## Start the local cloud, create a cluster, show its progress, keep serving (EXAMPLE=file: that one; ONCE=1: stop when ready)
	@$(BIN)/python -m local run $(LOCAL) $(if $(EXAMPLE),--example $(EXAMPLE)) $(if $(ONCE),--once)

serve: $(RUN_STAMP)  ## Start the local cloud; .local/env says how to reach it (KEYCLOAK=1, KUBERNETES=1: with real ones; SITE=name: with a site; LOCAL_HOME=folder: there)
	@$(BIN)/python -m local serve $(LOCAL)

test: $(STAMP)  ## Run all tests, but those on a real Keycloak (LIMIT=seconds)
	@STOCKYARD_GATE=$(LIMIT) $(BIN)/python -m pytest -n 3 --dist loadfile -m "not keycloak"

test-keycloak: $(STAMP)  ## Run the tests on a real Keycloak, which needs Java and Maven; the others have the stand-in
	@$(BIN)/python -m pytest -m keycloak tests/contracts tests/e2e

test-console: $(STAMP)  ## Look at every page of the console at three widths, light and dark, in a browser (make test looks once)
	@STOCKYARD_CONSOLE=full $(BIN)/python -m pytest tests/e2e/test_console_pages.py

test-kubernetes: kubernetes  ## Run the tests that need a real control plane (make test skips them where none is built)
	@STOCKYARD_GATE=$(LIMIT) $(BIN)/python -m pytest -n 2 --dist loadfile tests/kubernetes

soak: $(STAMP)  ## The same tests with the full counts, those parts that changed (PART=, SEED=); ends with one JSON line
	@$(BIN)/python -m local.prometheus.real.build || echo "Its test is skipped."
	@$(BIN)/python -m tests.soak $(if $(SEED),--seed $(SEED)) $(PART)

check: $(STAMP)  ## Lint, format, types, import rules, generated files, validators of others
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy app.py functions layers/common/python/stockyard stacks local client/stockyard_client constructs/stockyard_cdk constructs/stockyard_stack_resources benchmarks agent tests
	@$(BIN)/lint-imports
	@$(BIN)/lint-imports --config constructs/.importlinter
	@$(BIN)/python -m local.openapi --check
	@$(BIN)/python -m local.cloudformation.properties --check
	@$(BIN)/python -m local.assembly --check
	@$(BIN)/python -m stacks.settings_page --check
	@$(BIN)/python -m local.validators
	@$(BIN)/mdformat --check $(DOCUMENTS)
	@$(MAKE) --no-print-directory docs > /dev/null

new-provider: $(STAMP)  ## Begin a node provider (NAME=x): a folder and a line in the registry
	@$(BIN)/python -m local.new_provider $(NAME)

format: $(STAMP)  ## Format and fix what can be fixed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/mdformat $(DOCUMENTS)

openapi: $(STAMP)  ## Write openapi.json, docs/security-routes.md and the properties of constructs from the code
	@$(BIN)/python -m local.openapi
	@$(BIN)/python -m local.cloudformation.properties

template: $(STAMP)  ## Write local/dev_stage, which the local cloud deploys, from the stacks
	@$(BIN)/python -m local.assembly
	@$(BIN)/python -m local.openapi

wheels: $(STAMP)  ## Build the wheels of the client and of the constructs into .cache/wheels
	@rm -rf .cache/wheels && mkdir -p .cache/wheels/sources && cp -r client constructs .cache/wheels/sources
	@$(BIN)/uv build --quiet --wheel --out-dir .cache/wheels .cache/wheels/sources/client
	@$(BIN)/uv build --quiet --wheel --out-dir .cache/wheels .cache/wheels/sources/constructs
	@rm -rf .cache/wheels/sources && ls .cache/wheels/*.whl

settings: $(STAMP)  ## Write docs/settings.md from the code
	@$(BIN)/python -m stacks.settings_page

docs: $(STAMP)  ## Build the site of the documents into .cache/site, links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo .cache/site/index.html

synth: $(STAMP)  ## Synthesize the stacks into cdk.out (no Node, Docker or AWS credentials needed)
	@$(BIN)/python -m stacks.synth --stage $(STAGE)

bench: $(STAMP)  ## Benchmarks: one JSON line each
	@$(BIN)/python -m benchmarks.cold_start
	@$(BIN)/python -m benchmarks.claims
	@$(BIN)/python -m benchmarks.node_claims
	@$(BIN)/python -m benchmarks.pool_pass
	@$(BIN)/python -m benchmarks.list_latency

kubernetes: $(STAMP)  ## Build a real control plane with Go, for KUBERNETES=1 and the tests that want one
	@$(BIN)/python -m local.kubernetes.real.build
	@$(BIN)/python -m local.kubernetes.real.container_runtime
	@$(BIN)/python -m local.kubernetes.real.pinned_manifests

vault: $(STAMP)  ## Build a real Vault with Go, for the tests that want one
	@$(BIN)/python -m local.vault.real.build

tofu: $(STAMP)  ## Build a real OpenTofu with Go, for the tests that want one
	@$(BIN)/python -m local.opentofu.real.build

prometheus: $(STAMP)  ## Build a real Prometheus with Go, for the test that wants one
	@$(BIN)/python -m local.prometheus.real.build

cost: $(STAMP)  ## What a stage costs idle and per cluster
	@$(BIN)/python -m benchmarks.cost

clean:  ## Remove what was built
	@rm -rf .venv .local .cache cdk.out layers/vendor/build .mypy_cache .pytest_cache .ruff_cache
