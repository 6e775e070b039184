# Two commands: `make run` starts the app, `make test` proves it. The rest is for those who change it.
# Everything is installed into .venv; the browser of the tests comes from the system (apt-get).

PYTHON ?= python3
PORT   ?= 8501
JOBS   ?= auto
# requirements.lock pins what was tested; `make run LOCK=` takes the newest of each range instead.
LOCK   ?= requirements.lock

VENV := .venv
PY   := $(VENV)/bin/python
PIP  := $(PY) -m pip --disable-pip-version-check --quiet install
CONSTRAINTS := $(if $(LOCK),--constraint $(LOCK))

.PHONY: help run test test-all bench lint format lock install install-dev install-browser clean

help:
	@echo "make run       install and start the app at http://localhost:$(PORT)"
	@echo "make test      install what the tests need (Chromium and fonts too) and run them"
	@echo "make test-all  the same with the slow tests"
	@echo "make bench     measure the speed"
	@echo "make lint      check the style; 'make format' repairs it"
	@echo "make lock      write requirements.lock anew from the newest of each range"

run: install
	$(PY) -m streamlit run app.py --server.port $(PORT)

test: install-dev install-browser
	$(PY) -m pytest -n $(JOBS) --dist loadfile

test-all: install-dev install-browser
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m "slow or not slow"

bench: install-dev
	$(PY) -m benchmarks

lint: install-dev
	$(PY) -m ruff check .

format: install-dev
	$(PY) -m ruff check --fix .

# The stamps make a second run quick: pip is asked only when a requirements file has changed.
install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev
install-browser: install-dev
	@tools/install_browser.sh

$(PY):
	@PYTHON="$(PYTHON)" tools/make_venv.sh $(VENV)

$(VENV)/.installed: requirements.txt $(LOCK) | $(PY)
	$(PIP) -r requirements.txt $(CONSTRAINTS)
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	$(PIP) -r requirements-dev.txt $(CONSTRAINTS)
	@touch $@

lock:
	@PYTHON="$(PYTHON)" tools/make_venv.sh build/lock-venv
	build/lock-venv/bin/python -m pip --disable-pip-version-check --quiet install -r requirements-dev.txt
	build/lock-venv/bin/python -m pip freeze --all --exclude pip --exclude setuptools > requirements.lock
	rm -rf build/lock-venv

clean:
	rm -rf $(VENV) build
