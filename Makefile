# `make help` lists the targets. Variables: make setup PYTHON=python3.12 PIP_ARGS='--extra-index-url ...'
# A variable that is given on the command line is in the recipe's environment too: "$$TITLE" is safe to quote.
PYTHON = python3
PIP_ARGS =
VENV = .venv
LABS =
RESET =
OUT =
JOBS := $(shell n=$$(OMP_NUM_THREADS= nproc 2>/dev/null || echo 2); [ "$$n" -ge 2 ] && echo "$$n" || echo 2)
# On a machine whose cores have several processes each, every time limit of `make test` is so many times as long.
PATIENCE := $(shell awk -v cores=$$(OMP_NUM_THREADS= nproc) '{ n = $$1 / cores; print (n <= 1 ? 1 : n > 8 ? 8 : int(n + 0.99)) }' \
  /proc/loadavg 2>/dev/null || echo 1)
export JUPYTER_PREFER_ENV_PATH = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

run_python = "$(CURDIR)/$(VENV)/bin/python"
pytest = $(run_python) -m pytest --dist loadfile
# The stamp's name holds the path of the tree: a tree that was moved is set up again.
stamp := $(VENV)/.set-up-$(shell printf %s "$(CURDIR)" | cksum | cut -d' ' -f1)
newest = .venv-newest
mpich = .venv-mpich
nbgrader = .venv-nbgrader
# Triton 3.2.0 compiles for a T4's tensor cores, and newer ones do not; it has wheels for these Pythons on x86-64.
triton_3_2 = .triton-3.2
has_triton_3_2 = "$(PYTHON)" -c 'import platform, sys; sys.exit(platform.machine() != "x86_64" or sys.version_info >= (3, 14))'
newest_tests = $(filter-out $(addprefix tests/,authoring house launch notebooks),$(patsubst %/,%,$(wildcard tests/*/)))

.DEFAULT_GOAL := help
.PHONY: help setup run test lab check progress serve study mpirun t4 first-aid clean test-newest soak mpich nbgrader site sync refresh new-lab handout grade

help: ## List the targets
	@echo "Tile to Cluster. make <target>:"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile
	@echo "Variables: PYTHON=python3  PIP_ARGS='options for pip'  VENV=.venv  JOBS=$(JOBS)  PATIENCE=$(PATIENCE)"

setup: $(stamp) ## Create the environment in .venv (does nothing if it exists)
	@echo "$(VENV) is ready. Next: make lab"

run: $(stamp) ## Run every lab headless and write it to build/ (only some: LABS="00 02", or notebooks)
	@$(run_python) -m labs_helpers.course.run_labs --out build $(LABS)

test: $(stamp) ## Run what CI runs: pytest, and strict nbval over every notebook
	@LABS_PATIENCE=$(PATIENCE) $(pytest) -n $(JOBS) --timeout=$$((400 * $(PATIENCE))) \
	  --nbval --nbval-current-env --nbval-cell-timeout=$$((60 * $(PATIENCE)))

lab: $(stamp) ## Open your own copies of the labs in JupyterLab (RESET=02/3: restore that exercise's stub)
	@$(run_python) -m labs_helpers.course.my_labs $(if $(RESET),--reset "$(RESET)")

check: $(stamp) ## Show the points of your own copy of LAB=02 (FILE=notebook: of another file)
	@$(run_python) -m labs_helpers.grading.at_home "$(LAB)" $(if $(FILE),--file "$(FILE)")

progress: $(stamp) ## Show the points and open exercises of all labs in my_labs/ (and write my_labs/progress.html)
	@$(run_python) -m labs_helpers.course.all_labs

serve: $(stamp) ## Serve the byte model over the OpenAI API, on 127.0.0.1:8000 (ARGS=--help lists the options)
	@$(run_python) -m labs_helpers.serving $(ARGS)

study: $(stamp) ## Measure this machine: TOPIC=gemm (ARGS=--help lists its options; N=2: ranks under torchrun)
	@$(run_python) -m labs_helpers.launch.start $(if $(N),--ranks $(N)) study "$(TOPIC)" $(ARGS)

mpirun: $(stamp) ## Run SCRIPT=train_2d of mpi_scripts/ on N=4 ranks (ARGS="--dp 2 --tp 2" HOSTS=node1:8,node2:8)
	@$(run_python) -m labs_helpers.launch.start --ranks $(or $(N),4) $(if $(HOSTS),--hosts "$(HOSTS)") mpirun "$(SCRIPT)" $(ARGS)

t4: $(stamp) ## Install Triton 3.2.0 in .triton-3.2, which compiles for a T4's tensor cores (setup does this on a T4)
	@if $(has_triton_3_2); then \
	  echo "Installing Triton 3.2.0 in $(triton_3_2). Your kernels still run with the Triton in $(VENV)."; \
	  $(run_python) -m pip install $(PIP_ARGS) --upgrade --target $(triton_3_2) --no-deps triton==3.2.0; \
	  else echo "Triton 3.2.0 has no wheel for this Python or processor (it needs x86-64 and Python 3.13 or older):" \
	    "kernels cannot be compiled for a T4's tensor cores. Everything else works."; fi

first-aid: $(stamp) ## Check what works on this machine, and how to fix the rest
	@$(run_python) -m labs_helpers.course.first_aid

sync: $(stamp) ## Write stubs, checks, points and titles into the notebooks, and the README's table (CHECK=1: only compare)
	@$(run_python) -m labs_helpers.authoring.sync $(if $(CHECK),--check) $(LABS)

refresh: $(stamp) ## Execute the shipped labs and store their outputs in notebooks/ (only some: LABS="02 04")
	@$(run_python) -m labs_helpers.authoring.refresh $(LABS)

new-lab: $(stamp) ## Create a new lab that passes the tests: NUMBER=07 TOPIC=tensor_parallel TITLE="Two dimensions"
	@$(run_python) -m labs_helpers.authoring.new_lab "$$NUMBER" "$$TOPIC" "$$TITLE"

handout: $(stamp) ## Create a folder and a zip for students in build/handout (LABS="02 04" REFERENCES=no OUT=folder)
	@$(run_python) -m labs_helpers.grading.handout $(or $(LABS),$(LAB)) $(if $(filter no,$(REFERENCES)),--no-references) $(if $(OUT),--out "$(OUT)")

grade: $(stamp) ## Grade LAB=02 SUBMISSIONS=inbox/ in jails, into grades/02 (CLASS= OUT= DUE= EXTENSIONS= LATE= ACCEPT= OVERRIDES= ONLY=id,id REGRADE=1 CANVAS= COLUMN= MOODLE= SEED= NBVAL=no)
	@$(run_python) -m labs_helpers.grading "$(LAB)" "$(SUBMISSIONS)" --jobs $(or $(JOBS),2) $(if $(CLASS),--class "$(CLASS)") \
	  $(if $(OUT),--out "$(OUT)") $(if $(DUE),--due "$(DUE)") $(if $(LATE),--late "$(LATE)") \
	  $(if $(EXTENSIONS),--extensions "$(EXTENSIONS)") \
	  $(if $(ACCEPT),--accept "$(ACCEPT)") $(if $(OVERRIDES),--overrides "$(OVERRIDES)") $(if $(ONLY),--only "$(ONLY)") $(if $(REGRADE),--regrade) \
	  $(if $(CANVAS),--canvas "$(CANVAS)") $(if $(COLUMN),--column "$(COLUMN)") $(if $(MOODLE),--moodle "$(MOODLE)") \
	  $(if $(SEED),--seed "$(SEED)") $(if $(filter no,$(NBVAL)),--no-nbval); status=$$?; \
	  if [ $$status != 3 ]; then exit $$status; fi

soak: $(stamp) ## Run the exhaustive and long tests (more than an hour)
	@for what in nbgrader $(VENV)/.extra-site $(VENV)/.extra-browser; do \
	  $(MAKE) --no-print-directory $$what || echo "Could not create $$what; its tests are skipped."; done
	@$(pytest) -n $(JOBS) tests -m soak --timeout=1700; status=$$?; \
	  if [ $$status = 5 ]; then echo "No test is marked soak yet."; else exit $$status; fi

mpich: ## Create .venv-mpich, an environment with MPICH in which make soak also tests the collectives
	"$(PYTHON)" -m venv $(mpich)
	$(mpich)/bin/python -m pip install --quiet $(PIP_ARGS) mpich mpi4py numpy cloudpickle

nbgrader: $(nbgrader)/.set-up ## Create .venv-nbgrader, in which make soak tests the labs as nbgrader assignments

$(nbgrader)/.set-up:
	"$(PYTHON)" -m venv $(nbgrader)
	$(nbgrader)/bin/python -m pip install --quiet $(PIP_ARGS) --constraint constraints.txt nbgrader==0.9.6
	@touch $@

site: $(VENV)/.extra-site ## Build the site from the executed notebooks, into build/site/html
	@$(run_python) -m docs.build

# An extra of pyproject.toml, installed into the environment when a target needs it.
$(VENV)/.extra-%: $(stamp)
	$(run_python) -m pip install --quiet $(PIP_ARGS) --constraint constraints.txt --editable '.[$*]'
	@touch "$@"

test-newest: ## Run the kernels' tests under the newest Triton and numpy, in .venv-newest
	@$(MAKE) --no-print-directory setup VENV=$(newest)
	$(newest)/bin/python -m pip install --quiet $(PIP_ARGS) --upgrade --no-deps triton numpy
	@$(newest)/bin/python -m pip list | grep -E '^(numpy|torch|triton) '
	TRITON_DEFAULT_FP_FUSION=1 $(newest)/bin/python -m pytest -n $(JOBS) --dist loadfile $(newest_tests)

clean: ## Remove build/, caches and the environments; keep my_labs/ and your measurements in build/records/
	@if [ -d build/records ]; then echo "Keeping your measurements in build/records."; fi
	@if [ -d build ]; then find build -mindepth 1 -maxdepth 1 ! -name records -exec rm -rf {} +; fi
	@rmdir build 2>/dev/null || true
	rm -rf $(triton_3_2) .pytest_cache .ruff_cache .hypothesis *.egg-info
	find labs_helpers $(wildcard tests mpi_scripts) -name __pycache__ -type d -prune -exec rm -rf {} +
	@for venv in "$(VENV)" $(newest) $(mpich) $(nbgrader); do if [ -f "$$venv/pyvenv.cfg" ]; then rm -rf "$$venv"; fi; done

$(stamp): pyproject.toml setup.py constraints.txt
	@case "$$(uname -s)" in Linux) ;; \
	  Darwin) echo "Triton has no macOS wheel: open this folder in its devcontainer (see README.md)." >&2; exit 1 ;; \
	  *) echo "Triton runs on Linux: on Windows work inside WSL (see README.md)." >&2; exit 1 ;; esac
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "$(PYTHON) was not found. Install Python 3.11 or newer, or name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$$("$(PYTHON)" --version) is too old: the course needs Python 3.11 or newer." \
	    "Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Python's venv package is missing. On Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV). This downloads PyTorch, Triton and JupyterLab and takes a few minutes."
	"$(PYTHON)" -m venv "$(VENV)"
	$(run_python) -m pip install $(PIP_ARGS) --constraint constraints.txt --editable '.[test]'
	@rm -f "$(VENV)"/.set-up-* && touch $@
	@if nvidia-smi -L 2>/dev/null | grep -q "Tesla T4"; then $(MAKE) --no-print-directory t4; fi
