# Two commands: `make emulate TOPO=fattree` and `make test`. Each sets up what it needs first. With sudo networks are
# emulated in real time, without it time is virtual.

TOPO ?= fattree
K ?= 4
SWITCH ?= auto
MODE ?= reliable
PLANNERS ?=
PRESET ?=
PIPELINES ?=
SECONDS ?= 300
EXAMPLES ?=
ARGS ?=

# What the distribution provides, on Debian 12 and Ubuntu 24.04 alike. Virtual time needs the first line only.
ALWAYS := python3-venv gcc libc6-dev
EMULATION := mininet iproute2 iputils-ping clang libbpf-dev linux-libc-dev tcpreplay tcpdump
missing = $$(for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done)

# Of a machine that is not Debian's: who installs there, and what. Nothing is installed, but what is lacking is said.
INSTALLERS := "dnf install gcc" "pacman -S gcc" "zypper install gcc" "apk add gcc musl-dev" "xcode-select --install"

# Mininet is a package of the distribution's own Python, which therefore comes first.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)

pipelines = $(if $(PIPELINES),--pipelines $(PIPELINES))

VENV := .venv
BIN := $(VENV)/bin

.PHONY: emulate train test wheel fuzz bench exactness calibrate curve lint docs p4 setup links packages clean help
.DEFAULT_GOAL := help

help:
	@echo "Without sudo, emulate, train and exactness run in virtual time, and test runs what needs no network."
	@echo "sudo make emulate TOPO=fattree|leafspine [K=4] [SWITCH=auto|bmv2|fast|virtual] [MODE=reliable|replay] [PLANNERS=aro,atp,lbmm] [PIPELINES=2]"
	@echo "     PIPELINES=1..8 (also train, calibrate): every switch's ports as so many groups of consecutive ports, alike to within one,"
	@echo "     that do not sum together; on any fabric or file, whose own groups give way"
	@echo "sudo make emulate TOPO=fattree K=6 PRESET=inart   InArt's network and models, the paper's figures beside ours"
	@echo "sudo make train TOPO=fattree|leafspine [K=4] [SWITCH=auto|bmv2|fast|virtual] [PLANNERS=aro,atp]   a model, trained through the network"
	@echo "sudo make test      the whole test suite (what this machine lacks is skipped, with its reason)"
	@echo "sudo make fuzz      [SECONDS=300] [EXAMPLES=N]   new random examples for the tests that draw some; failing ones are kept as tests"
	@echo "sudo make bench     packets per second of every installed switch target"
	@echo "sudo make exactness [SWITCH=auto|virtual|fast|bmv2] [ARGS=--long]   slot policies x faults x levels: are all sums exact?"
	@echo "sudo make calibrate TOPO=fattree [K=4] [SWITCH=auto|bmv2|fast]   the highest link rate that this machine carries"
	@echo "sudo make curve     the same of fat-trees with k = 4, 6, 8, 10, 12: table, CSV and plot"
	@echo "     make wheel     the kit as pip installs it, in an empty environment with the newest packages [PYTHON=python3.13]"
	@echo "     make lint      ruff, mypy, who imports whom, and the size of the project"
	@echo "     make docs      the site into site/, from docs/; begin with site/index.html"
	@echo "     make p4        compile p4/ina.p4 and p4/circuit.p4 again (needs p4c)"

emulate: setup
	$(BIN)/inakit emulate --topo $(TOPO) --k $(K) --switch $(SWITCH) --mode $(MODE) \
		$(if $(PLANNERS),--planners $(PLANNERS)) $(if $(PRESET),--preset $(PRESET)) $(pipelines) $(ARGS)

train: setup
	$(BIN)/inakit train --topo $(TOPO) --k $(K) --switch $(SWITCH) $(if $(PLANNERS),--planners $(PLANNERS)) \
		$(pipelines) $(ARGS)

test: setup
	$(BIN)/python tests/phases.py $(ARGS)

wheel:
	$(PYTHON) tests/wheel.py $(ARGS)

# What it finds is kept in tests/found, and `make test` replays it.
fuzz: setup
	$(BIN)/python -m pytest $(if $(EXAMPLES),--fuzz-examples $(EXAMPLES),--fuzz-seconds $(SECONDS)) $(ARGS)

bench: setup
	$(BIN)/inakit bench $(ARGS)

exactness: setup
	$(BIN)/inakit exactness --switch $(SWITCH) $(ARGS)

calibrate: setup
	$(BIN)/inakit calibrate --topo $(TOPO) --k $(K) --switch $(SWITCH) $(pipelines) $(ARGS)

curve: setup
	$(BIN)/inakit calibrate --curve 4,6,8,10,12 --switch $(SWITCH) $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tests/size.py

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

p4:
	cd p4 && p4c-bm2-ss --std p4-16 --p4runtime-files build/ina.p4info.txt -o build/ina.json ina.p4
	cd p4 && sha256sum ina.p4 values.p4 faults.p4 marks.p4 build/ina.json build/ina.p4info.txt > build/ina.sha256
	cd p4 && p4c-bm2-ss --std p4-16 -o build/circuit.json circuit.p4
	cd p4 && sha256sum circuit.p4 build/circuit.json > build/circuit.sha256
	cd p4 && p4c-bm2-ss --std p4-16 --p4runtime-files build/ina_hw.p4info.txt -o build/ina_hw.json ina_hw/v1model.p4
	cd p4 && sha256sum ina_hw/[!t]*.p4 faults.p4 marks.p4 build/ina_hw.json build/ina_hw.p4info.txt > build/ina_hw.sha256

setup: links packages .make/python

# The package is a folder of links. A zip may have lost them, and git does not make them where it believes it cannot.
links:
	@test -d src/inakit/topo || { echo "the links in inakit/ and src/ are missing: run" \
		"'git config core.symlinks true && git checkout inakit src', or clone the repository anew" >&2; exit 2; }

# Root installs what is missing. Other users are told once, and can do without what only emulation needs.
packages: links
	@command -v dpkg-query >/dev/null || { \
		command -v cc >/dev/null || command -v clang >/dev/null && exit 0; \
		for by in $(INSTALLERS); do command -v $${by%% *} >/dev/null && break; by=; done; \
		echo "missing: a C compiler (cc)$${by:+; run '$$by' once, as root}" >&2; exit 2; }; \
	always="$(call missing,$(ALWAYS))"; emulation="$(call missing,$(EMULATION))"; \
	if [ "$$(id -u)" = 0 ]; then \
		[ -z "$$always$$emulation" ] || { echo "set-up, once: installing $$always$$emulation" && apt-get update -q && \
			DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$always $$emulation; }; \
	elif [ -n "$$always" ]; then \
		echo "missing packages:" $$always"; run 'sudo make setup' once" >&2; exit 2; \
	elif [ -n "$$emulation" ] && [ ! -e .make/python ]; then \
		echo "not installed:" $$emulation"; only emulation in real time needs them (run 'sudo make setup' once)"; \
	fi

# Mininet is the distribution's, so the environment sees the system's packages; all else is the lock file's.
# An environment that is there is kept: the virtual machine's is made with another Python than the system's.
# Modules are compiled on all processors, where pip would take one. Some hold templates, which do not compile.
# What root sets up is given to whom the folder belongs to, who can then set up again without root.
.make/python: requirements.lock pyproject.toml setup.py | packages
	@for made in . .make $(VENV); do \
		[ ! -e $$made ] || [ -w $$made ] || { echo "$$(id -un) may not write to $$made; run 'sudo make setup' once" >&2; exit 2; }; \
	done
	@test -x $(BIN)/pip || $(or $(PYTHON),false) -c '$(NEW_ENOUGH)' 2>/dev/null || { \
		echo "no Python of 3.11 or newer with venv$(PYTHON:%=: %); install one, or name it:" \
			"make setup PYTHON=/path/to/python3" >&2; exit 2; }
	@echo "set-up, once, a minute or two: a Python environment in $(VENV), with the packages of requirements.lock"
	@test -x $(BIN)/pip || $(PYTHON) -m venv --system-site-packages $(VENV)
	$(BIN)/python -m pip install -q --no-compile --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@echo "set-up: compiling the packages, so that the first command does not have to"
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@mkdir -p .make && touch $@
	@[ "$$(id -u)" != 0 ] || chown -R --reference=. $$(ls -d .make $(VENV) src/*.egg-info 2>/dev/null)

clean:
	rm -rf .make $(VENV) site src/*.egg-info
