# Parley's commands. They need python3 (3.11 or newer) and make, and install everything else.

PYTHON_ENV := .venv/bin
# The checks use their own data folder, not that of a Parley that runs from this folder.
CHECK_DATA := var/checks
PYTEST := $(PYTHON_ENV)/pytest --durations 15
# On PostgreSQL, only the tests that depend on the database run again. The markers of the tests follow.
ON_POSTGRES := $(PYTHON_ENV)/python scripts/on-postgres $(PYTEST) -n 4 -m

# Two run at a time, the longest first. mypy runs without workers, because these must start within three seconds, and a
# busy machine needs longer.
LINTS := lint-types lint-static lint-django lint-layers lint-sources lint-templates

.PHONY: help run link environment dev-environment test-needs lint $(LINTS) check assets words test test-all chaos

help:
	@echo "make run    start Parley and print a sign-in link   (settings: docs/configuration.md)"
	@echo "make link   print a new sign-in link of the first administrator; earlier ones end"
	@echo "make lint   formats, types, import contracts, plain words, migrations, static/dist"
	@echo "make check  make lint, and the tests that need no database, server or browser"
	@echo "make assets build static/dist from the pages' scripts and style sheets"
	@echo "make words  collect the texts of the sources in locale/, compile the translations, and print what is missing"
	@echo "make test   make lint, and all tests: each screen in one size and theme, a quarter of the random cases"
	@echo "make dev-environment  put the Python packages of lint and tests into .venv;  make test-needs  install the programs of the tests"
	@echo "make chaos  kill a team's processes at random for an hour, see docs/reliability.md   (STRIKES, SEED, SESSIONS)"
	@echo "make test-all   the same, with every screen on desktop and phone, light and dark, and all random cases"

run: environment
	@exec $(PYTHON_ENV)/python manage.py serve

link: environment
	@$(PYTHON_ENV)/python manage.py signinlink

environment:
	@scripts/environment requirements/run.txt

dev-environment:
	@scripts/environment requirements/dev.txt

test-needs:
	@scripts/test-needs

lint: export PARLEY_DATA = $(CHECK_DATA)
lint: dev-environment
	@scripts/node-packages
	@$(MAKE) --no-print-directory --jobs 2 $(LINTS)

lint-types:
	$(PYTHON_ENV)/mypy

lint-static:
	node_modules/.bin/prettier --check --log-level warn static scripts/assets.js
	node_modules/.bin/oxlint --deny-warnings static/js scripts/assets.js
	node scripts/assets.js --check

lint-django:
	$(PYTHON_ENV)/python manage.py makemigrations --check --dry-run
	$(PYTHON_ENV)/python manage.py check

lint-layers:
	$(PYTHON_ENV)/lint-imports

lint-sources:
	$(PYTHON_ENV)/ruff check .
	$(PYTHON_ENV)/ruff format --check .
	$(PYTHON_ENV)/python scripts/plain-words

lint-templates:
	$(PYTHON_ENV)/djangofmt --check --quiet templates

# With this variable, each process compiles all tests again, which takes a tenth of the time.
check test test-all: export PYTHONDONTWRITEBYTECODE =

check: export PARLEY_DATA = $(CHECK_DATA)
# Some tests wait for processes, so three workers keep two cores busy.
check: lint
	$(PYTEST) -n 3 -m "not browser and not server and not database" $(addprefix --ignore=tests/,access admin browser flows postgres sqlite)

assets:
	@scripts/node-packages
	@node scripts/assets.js

words: dev-environment
	@$(PYTHON_ENV)/python scripts/words

test test-all: export PARLEY_DATA = $(CHECK_DATA)
# Tests wait for processes and pages half of the time, so four workers keep two cores busy.
test: test-needs lint
	$(PYTEST) -n 4 -m "not every_look"
	$(ON_POSTGRES) "(both_databases or postgres) and not every_look"

test-all: export PARLEY_ALL_CASES = 1
test-all: test-needs lint
	$(PYTEST) -n 4
	$(ON_POSTGRES) "both_databases or postgres"

chaos: export PARLEY_DATA = $(CHECK_DATA)
chaos: export PARLEY_STRIKES = $(or $(STRIKES),1000)
chaos: export PARLEY_CHAOS_SEED = $(or $(SEED),1)
chaos: export PARLEY_CHAOS_SESSIONS = $(or $(SESSIONS),30)
chaos: dev-environment
	$(PYTHON_ENV)/python scripts/on-postgres $(PYTHON_ENV)/pytest -s tests/team
