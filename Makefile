# The two commands of a newcomer are `make serve` and `make test`; everything else is for those who stay.
PYTHON ?= python3.11
BIN := .venv/bin
# The suite starts hundreds of processes: what Python has compiled is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install serve demo test test-all chaos check format openapi client clean screenshots
.PHONY: bench-service bench-scale bench-page bench-capture bench-capture-speed bench-capture-cost reproduce-capture
.PHONY: bench-continual bench-continual-speed reproduce-continual
.PHONY: bench-classification reproduce-classification bench-webhooks bench-queue bench-shards bench-mlflow

install: .venv/.installed

.venv/.installed: pyproject.toml
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.test-installed: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

serve: install
	@exec $(BIN)/flashcards serve

demo: install
	@exec $(BIN)/flashcards demo

# Most of a test is waiting for a real process: three at a time are faster than two, on two cores.
test: .venv/.test-installed
	$(BIN)/python -m pytest -m "not slow" -n 3 --dist worksteal

test-all: test
	$(BIN)/python -m pytest -m "slow and not alone" -n 3 --dist worksteal
	$(BIN)/python -m pytest -m alone

# A hundred kills on each stack; `make chaos CHAOS="--stack servers --kills 20 --seeds 1,2,3"` says otherwise.
chaos: .venv/.test-installed
	$(BIN)/python -m tests.chaos $(CHAOS)

check: .venv/.test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Pictures of every view of the page into docs/screenshots; needs Chromium and its driver.
screenshots: .venv/.test-installed
	$(BIN)/python docs/make_screenshots.py $(URL)

# What a test compares the API with; through a second file, so that a tree that does not import leaves the first alone.
openapi: .venv/.test-installed
	$(BIN)/python -m service.document > docs/openapi.json.new
	@mv docs/openapi.json.new docs/openapi.json

# The client that waits, from the one that awaits; a test says when they differ.
client: .venv/.test-installed
	$(BIN)/python tests/support/sync_of.py

bench-service: .venv/.test-installed
	$(BIN)/python -m benchmarks.service

# FLASHCARDS_DATA names a folder with mnist.npz, fashion_mnist.npz and cifar10.npz; done cells are kept in .reproduce.
# `make bench-capture BENCH="--bar fidelity"`: one bar. Speed and cost also have a target of their own, below.
bench-capture: .venv/.test-installed
	$(BIN)/python -m benchmarks.capture $(BENCH)

reproduce-capture: .venv/.test-installed
	$(BIN)/python -m benchmarks.reproduce_capture $(REPRODUCE)

# These want svhn.npz and omniglot.npz as well. `make bench-continual BENCH="--bar ten"`: ten tasks.
bench-continual: .venv/.test-installed
	$(BIN)/python -m benchmarks.continual $(BENCH)

# `make reproduce-continual REPRODUCE="--kept --epochs 5"`: the report of what is kept of that size, without a training.
reproduce-continual: .venv/.test-installed
	$(BIN)/python -m benchmarks.reproduce_continual $(REPRODUCE)

# `make bench-continual-speed BENCH="--avalanche PYTHON"`: beside Avalanche, which wants an environment of its own.
bench-continual-speed: .venv/.test-installed
	$(BIN)/python -m benchmarks.continual_speed $(BENCH)

# These want mnist.npz, fashion_mnist.npz and cifar10.npz. `BENCH="--bar sessions"`, `BENCH="--bar speed"`: the others.
bench-classification: .venv/.test-installed
	$(BIN)/python -m benchmarks.classification $(BENCH)

reproduce-classification: .venv/.test-installed
	$(BIN)/python -m benchmarks.reproduce_classification $(REPRODUCE)

# `make bench-mlflow BENCH="--trials 30"`: more of them, on a machine that others use too.
bench-mlflow: .venv/.test-installed
	$(BIN)/python -m benchmarks.mlflow_mirror $(BENCH)

bench-scale: .venv/.test-installed
	$(BIN)/python -m benchmarks.scale

# A gate: it fails where an event did not arrive. `make bench-webhooks BENCH=100`: fewer of them.
bench-webhooks: .venv/.test-installed
	$(BIN)/python -m benchmarks.webhooks $(BENCH)

# 2,000 jobs by HTTP and 2,000 by the broker, at once: fails where one is lost or run twice.
bench-queue: .venv/.test-installed
	$(BIN)/python -m benchmarks.queue_door

# Needs Chromium and its driver. `make bench-page BENCH=watchers`: one half of it.
bench-page: .venv/.test-installed
	$(BIN)/python -m benchmarks.page $(BENCH)

bench-capture-speed: .venv/.test-installed
	$(BIN)/python -m benchmarks.capture_speed

# `make bench-capture-cost BENCH="--architecture blk_4_fil_64"`: the paper's size.
bench-capture-cost: .venv/.test-installed
	$(BIN)/python -m benchmarks.capture_cost $(BENCH)

# `make bench-shards BENCH="--count 2048 --rounds 1"`: sooner, and less sure.
bench-shards: .venv/.test-installed
	$(BIN)/python -m benchmarks.shards $(BENCH)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis *.egg-info
