# `make demo` and `make test` work on a fresh clone with Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: install chromium demo quick test lint docs real hostile bench clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "repeat-xai needs Python 3.11 or newer; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	touch $@

# The browser tests open pages in Debian's Chromium. It is installed where that is allowed; without it these tests are
# skipped, but a run of CI fails.
chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  apt-get update -qq && apt-get install -qq --yes chromium > /dev/null && exit 0; fi; \
	echo "There is no Chromium: install the package chromium, or the browser tests are skipped." >&2; test -z "$$CI"

demo: install
	$(BIN)/repeat-xai demo --out demo

# Lint, types and the fast tests; under a minute and a half on two cores. The other folders hold slow tests alone, which
# would only take time to collect.
FAST := src tests/oracles tests/properties tests/reference tests/unit
quick: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile -m 'not (slow or cluster or full)' $(FAST)

test: lint docs chromium
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m 'not full and not hostile'

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The paper's figures at the paper's budget, on real weights and images; about an hour on two cores.
real: install
	$(BIN)/pytest -m full -s

# Every hostile input, a long fuzzing run and all tests that kill a running command; about half an hour on two cores.
hostile: install
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/hostile -n 2 --dist loadgroup -m 'hostile or not hostile'

# Seconds an image against the published loop and the encoder alone; a quarter of an hour on two cores.
bench: install
	$(BIN)/python benchmarks/speed.py --out speed

clean:
	rm -rf $(VENV) site dist demo speed.json speed.png
