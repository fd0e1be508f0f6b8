#!/usr/bin/env bash
# One entry: demo, test, check, build, docs, bench. Makes .venv when it is missing and renews it when the lock changes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
py=.venv/bin/python

usage() {
  cat <<'END'
usage: ./do demo                          from a table to a model, its score and a report
       ./do test [--all] [PYTEST ARGS]    the checks, then the tests; --all adds the long, browser and GPU-interpreter ones, and a run with the oldest dependencies
       ./do check                         ruff, mypy, import contracts, and the shape of the package
       ./do docs                          the documentation as a site, in docs/site/ (open index.html; it needs no network)
       ./do build                         wheel and source archive, in dist/
       ./do bench [NAME ...] [--list]     the benchmarks, side by side with peers (all of them without a name)
END
}

say() { printf 'do: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
run() { say "$*"; "$@"; }
pip_install() { run "$py" -m pip install --quiet "$@"; }

# A name on PATH may be a shim that starts nothing, so each candidate is run.
find_python() {
  local name
  for name in python3.13 python3.12 python3.11 python3; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$name"; return; fi
  done
  return 1
}

venv_command() {
  local python
  if command -v uv >/dev/null; then echo "uv venv --quiet --clear --seed --python >=3.11"; return; fi
  python=$(find_python) || die "Mercer needs Python 3.11 or newer; put one on PATH, or install uv."
  "$python" -c 'import venv, ensurepip' 2>/dev/null ||
    die "$python has no venv module; install it (on Debian: apt install python3-venv), or install uv."
  echo "$python -m venv --clear"
}

make_venv() {
  local command
  command=$(venv_command)
  trap 'rm -rf .venv; say "failed: the unfinished .venv was removed."' EXIT
  run $command .venv
}

install_lock() {
  if command -v uv >/dev/null && run uv pip install --quiet --python "$py" -r requirements.lock; then return; fi
  pip_install -r requirements.lock
}

# An editable install knows its folder, so a copied .venv is renewed too.
stamp() { { cat requirements.lock pyproject.toml; pwd; } | cksum; }

environment() {
  if [[ -x $py && "$(cat .venv/stamp 2>/dev/null)" == "$(stamp)" ]]; then return; fi
  if ! "$py" -m pip --version >/dev/null 2>&1; then make_venv; fi
  rm -f .venv/stamp
  install_lock
  pip_install --no-deps --no-build-isolation -e .
  stamp >.venv/stamp
  trap - EXIT
}

check() {
  run "$py" -m ruff check .
  run "$py" -m ruff format --check --quiet .
  run "$py" -m mypy
  run "$py" .venv/bin/lint-imports
  run "$py" tools/shape.py
}

build() {
  rm -rf dist
  run "$py" -m hatchling build
}

# What only the site and its notebooks need is installed when it is first asked for.
docs_environment() {
  local stamp
  stamp=$(cksum <docs/requirements.lock)
  if [[ "$(cat .venv/docs-stamp 2>/dev/null)" == "$stamp" ]]; then return; fi
  pip_install -r docs/requirements.lock || return 1
  echo "$stamp" >.venv/docs-stamp
}

docs() {
  docs_environment || die "the packages of docs/requirements.lock could not be installed; see above."
  rm -rf docs/site docs/reference/generated
  run "$py" -m sphinx --quiet --fail-on-warning --keep-going --jobs auto --doctree-dir docs/_build docs docs/site
  say "written: docs/site/index.html"
}

# pip, not uv: pip takes a CPU wheel of torch where one is configured.
gpu_tests() {
  if ! "$py" -c 'import torch, triton' 2>/dev/null && ! pip_install torch==2.13.0 triton==3.9.0; then
    say "skipped: gpu tests (torch 2.13.0 and triton 3.9.0 could not be installed)"
    return
  fi
  TRITON_INTERPRET=1 run "$py" -m pytest tests -m gpu || { (($? == 5)) && say "no gpu tests were found"; }
}

# Python 3.11 and the oldest versions that pyproject.toml claims; the default tests, as of the newest ones.
oldest_python() {
  local name
  for name in python3.11 python3.12; do
    if "$name" -c 'import venv, ensurepip' 2>/dev/null; then echo "$name -m venv --clear"; return; fi
  done
  if command -v uv >/dev/null; then echo "uv venv --quiet --clear --seed --python 3.11"; return; fi
  return 1
}

oldest_environment() {
  local command stamp
  stamp=$(cat tools/oldest.txt pyproject.toml | cksum)
  if [[ "$(cat .venv-oldest/stamp 2>/dev/null)" == "$stamp" ]]; then return; fi
  command=$(oldest_python) || return 1
  run $command .venv-oldest || return 1
  run .venv-oldest/bin/python -m pip install --quiet -r tools/oldest.txt || return 1
  run .venv-oldest/bin/python -m pip install --quiet --no-deps --no-build-isolation -e . || return 1
  echo "$stamp" >.venv-oldest/stamp
}

oldest_tests() {
  if ! oldest_environment; then
    say "skipped: tests with the oldest dependencies (tools/oldest.txt could not be installed on Python 3.11 or 3.12)"
    return
  fi
  MERCER_TEST_ALL=0 run .venv-oldest/bin/python -m pytest -n auto --dist worksteal -m "not gpu and not browser"
}

run_tests() {
  check
  if [[ ${1-} != --all ]]; then run "$py" -m pytest -n auto --dist worksteal "$@"; return; fi
  export MERCER_TEST_ALL=1
  docs_environment || say "skipped: the site and its notebooks (docs/requirements.lock could not be installed)"
  run "$py" -m pytest -n auto --dist worksteal -m "not gpu" --cov=mercer --cov-report=term:skip-covered "${@:2}"
  oldest_tests
  gpu_tests
}

case ${1-} in
  demo) environment; run "$py" -m mercer demo "${@:2}" ;;
  test) environment; run_tests "${@:2}" ;;
  check) environment; check ;;
  build) environment; build ;;
  docs) environment; docs ;;
  bench) environment; run "$py" -m bench "${@:2}" ;;
  *) usage >&2; exit 2 ;;
esac
