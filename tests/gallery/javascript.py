"""The scripts of the pages outside a browser: what node computes, for many calls at once."""

import json
import shutil
import subprocess

import pytest

from mercer.gallery.html import asset
from mercer.gallery.page import plain

PURE = ("linalg", "kernels", "parse", "learners", "figure")
# Calls are [page or "", expression over (data, state)]; results come back in their order.
HARNESS = """
const fs = require("fs"), vm = require("vm"), input = JSON.parse(fs.readFileSync(0, "utf8"));
const rooms = new Map(), room = figure => {
  if (!rooms.has(figure)) {
    rooms.set(figure, vm.createContext({ console, structuredClone }));
    vm.runInContext(input.runtime + "\\n" + figure, rooms.get(figure));
  }
  return rooms.get(figure);
};
const answers = input.calls.map(({ figure, data, state, expression }) => {
  const context = Object.assign(room(figure ?? ""), { data, state });
  try { return { value: vm.runInContext(expression, context) }; }
  catch (e) { return { error: e.message, refusal: e.constructor.name === "Refusal" }; }
});
process.stdout.write(JSON.stringify(answers, (k, v) => typeof v === "number" && !Number.isFinite(v) ? String(v) : v));
"""
BEGIN = "(typeof FIGURE.state === 'function' ? FIGURE.state(data) : FIGURE.state)"
COMPUTE = f"JSON.parse(JSON.stringify(FIGURE.compute({{...{BEGIN}, ...state}}, data)))"


def node():
    found = shutil.which("node")
    if found is None:
        pytest.skip("no node on PATH; the browser tests run the same scripts")
    return found


def run(calls):
    """The answers to calls, each a dict of figure, data, state and expression."""
    given = {
        "runtime": "\n".join(asset(f"runtime/{name}.js") for name in PURE),
        "calls": plain(calls),
    }
    done = subprocess.run(
        [node(), "-e", HARNESS],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def evaluate(expression, **data):
    (answer,) = run([{"data": data, "expression": expression}])
    assert "error" not in answer, answer
    return answer["value"]


def compute(slug, states, data):
    """What the figure of a page computes from some states."""
    figure = asset(f"figures/{slug}.js")
    answers = run(
        [{"figure": figure, "data": data, "state": s, "expression": COMPUTE} for s in states]
    )
    assert not [a for a in answers if "error" in a], answers
    return [a["value"] for a in answers]
