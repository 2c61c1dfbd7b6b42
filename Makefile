# Two commands do everything on a machine with Python >= 3.11 and a package index:
#   make demo   a real task on the embedded model
#   make test   all checks and all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo browser postgres pictures test suite check test-quick docs torture bench lock clean model

demo: $(READY)
	$(BIN)/artoo run "How many Python files (name ending in .py) are in the directory src and its subdirectories? Print the number, and in one line how it was found."

# Byte code is kept, also where the environment says otherwise: without it each of the many processes that the
# tests start compiles all modules anew.
export PYTHONDONTWRITEBYTECODE :=

# The checks use one processor, and the tests wait for other programs a third of their time: both run at once.
test: model browser postgres
	$(MAKE) -j 2 check suite

# What `check` has run is left out. A test that fails next to others is run once more, alone; both are in the output.
suite: $(READY)
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --ignore tests/control --ignore tests/contracts || { \
	test $$? -eq 1 && $(BIN)/pytest --last-failed --last-failed-no-failures none; }

check: $(READY)
	$(BIN)/ruff check src lab tests benchmarks bench checks
	$(BIN)/ruff format --check src lab tests benchmarks bench checks
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python checks/size.py
	$(BIN)/python checks/words.py
	$(BIN)/coverage run -m pytest -q tests/control tests/contracts
	$(BIN)/coverage report

test-quick: $(READY) browser postgres
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not torture and not embedded"

# The site, in build/site; a dead link, or a page that no other one names, is an error.
docs: $(READY) $(VENV)/.docs-ready
	$(BIN)/python -m sphinx -q -W --keep-going -c docs/site -d build/doctrees . build/site
	cp build/site/README.html build/site/index.html

$(VENV)/.docs-ready: requirements/docs.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	touch $@

torture: $(READY) model postgres
	$(BIN)/pytest -m torture
	test ! -d .postgres/14 || ARTOO_POSTGRES=.postgres/14/pginstall/bin \
	$(BIN)/pytest -n 3 --dist loadfile tests/store tests/memory tests/agents
	$(BIN)/pytest --hypothesis-profile=search -n 3 --dist loadfile -m "not torture and not embedded"

# A browser for the tests of the page. Where none can be had they are skipped, with the reason.
browser: $(READY)
	$(BIN)/python tests/web/fetch_browser.py

# A PostgreSQL 14 that speaks TLS, for the store's tests. Where none can be had they are skipped, with the reason.
postgres: $(READY)
	$(BIN)/python tests/fetch_postgres.py

# The pictures in docs/web.md, made by the tests.
pictures: browser
	ARTOO_PICTURES=docs/pictures $(BIN)/pytest tests/web/test_browser.py

model: $(READY)
	$(BIN)/artoo model pull

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "artoo needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Resolves the newest allowed versions anew, with hashes and without the address of any index.
lock: $(READY)
	$(BIN)/python -m uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header -o requirements/runtime.txt --quiet --upgrade
	$(BIN)/python -m uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header -o requirements/dev.txt --quiet --upgrade
	$(BIN)/python -m uv pip compile --group pyproject.toml:docs -c requirements/dev.txt --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header -o requirements/docs.txt --quiet --upgrade

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .coverage .import_linter_cache
