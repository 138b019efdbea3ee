# The two commands of a newcomer are `make serve` and `make test`; everything else is for those who stay.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: install serve demo test check format bench-service clean

install: .venv/.installed

.venv/.installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.test-installed: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

serve: install
	@exec $(BIN)/flashcards serve

demo: install
	@exec $(BIN)/flashcards demo

test: .venv/.test-installed
	$(BIN)/python -m pytest

check: .venv/.test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-service: .venv/.test-installed
	$(BIN)/python -m benchmarks.service

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis *.egg-info
