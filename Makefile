# Parley's commands. They need python3 (3.11 or newer) and make; everything else they fetch themselves.

PYTHON_ENV := .venv/bin
# The checks keep away from the data of a Parley that runs from this folder.
CHECK_DATA := var/checks
# The tests that are about rows, and all pages with all sorts of junk: they run once more on PostgreSQL.
ABOUT_ROWS := $(addprefix tests/,admin api flows live models postgres running services transfer) \
	--ignore tests/flows/test_vendors.py --ignore tests/api/test_schema.py $(addprefix tests/access/,test_pages.py test_junk.py test_junk_commands.py)

.PHONY: help run link environment dev-environment test-needs lint check words test

help:
	@echo "make run    start Parley and print a sign-in link   (HOST, PORT and the rest: README.md)"
	@echo "make link   print a new sign-in link"
	@echo "make check  lint, types, import contracts, migrations, fast tests"
	@echo "make words  find the words of the sources for locale/, and compile what is translated"
	@echo "make test   all of that and every other test"

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
	$(PYTHON_ENV)/ruff check .
	$(PYTHON_ENV)/ruff format --check .
	$(PYTHON_ENV)/mypy
	$(PYTHON_ENV)/lint-imports
	$(PYTHON_ENV)/python scripts/plain-words
	$(PYTHON_ENV)/python manage.py makemigrations --check --dry-run
	$(PYTHON_ENV)/python manage.py check

# Compiling every test anew in each process, as this variable asks for, takes a tenth of the time.
check test: export PYTHONDONTWRITEBYTECODE =

check: export PARLEY_DATA = $(CHECK_DATA)
check: lint
	$(PYTHON_ENV)/pytest -n 2 -m "not browser and not server"

words: dev-environment
	@$(PYTHON_ENV)/python scripts/words

test: export PARLEY_DATA = $(CHECK_DATA)
# Tests wait for processes and pages as often as they compute: three workers keep two cores busy.
test: test-needs lint
	$(PYTHON_ENV)/pytest -n 3
	$(PYTHON_ENV)/python scripts/on-postgres $(PYTHON_ENV)/pytest -n 3 $(ABOUT_ROWS)
