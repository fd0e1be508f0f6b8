"""Files that were changed on purpose, with the right checksum: each is refused in a sentence, or
answers within its arrays.

`python -m tests.store.fuzz 10000` changes so many, in a process whose loops are compiled with
checks of every bound, in a cache of its own. A failure is a crash, a place out of bounds, or a
place outside its range that was let through.
"""

from __future__ import annotations

import copy
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from mercer.store import encode
from mercer.store.arrays import to_bytes
from mercer.store.files import Parts, load

ROOT = Path(__file__).parents[2]
SECONDS, BYTES = 60, 12 << 30  # for one file
SLOW = 75  # exit status of a process whose file took longer
FAR = (-(10**6), 2**62)  # places that no array has
NEAR = (-1, -40, 0, 1, 2, 3, 7, 60, 10**9, -(2**62))
BAD = ("IndexError", "SystemError", "AssertionError")


# changes of arrays
def a_place(rng, a):
    """One whole number is another."""
    a = a.copy()
    if a.size and a.dtype.kind in "iu":
        value = int(rng.choice([*NEAR, int(a.max()) + 1, len(a)]))
        info = np.iinfo(a.dtype)
        a.flat[rng.integers(a.size)] = min(max(value, info.min), info.max)
    return a


def a_number(rng, a):
    a = a.copy()
    if a.size and a.dtype.kind == "f":
        a.flat[rng.integers(a.size)] = rng.choice(
            [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -1.0, 0.5]
        )
    return a


def steps(rng, a):
    """All whole numbers one further, or one before."""
    return a + rng.choice(np.array([-1, 1])).astype(a.dtype) if a.dtype.kind == "i" else a


def order(rng, a):
    return np.ascontiguousarray(a[rng.permutation(len(a))]) if a.ndim and len(a) else a


def fewer(rng, a):
    axis = rng.integers(a.ndim) if a.ndim else 0
    return np.ascontiguousarray(np.delete(a, -1, axis)) if a.size and a.ndim else a


def more(rng, a):
    axis = rng.integers(a.ndim) if a.ndim else 0
    return np.repeat(a, 2, axis) if a.size and a.ndim else a


def turned(rng, a):
    return np.ascontiguousarray(a.T)


def flat(rng, a):
    return a.reshape(rng.choice([-1, 1]) if a.size == 1 else -1) if rng.random() < 0.5 else a[None]


def empty(rng, a):
    return np.ascontiguousarray(a[:0]) if a.ndim else a


def another_type(rng, a):
    if a.dtype.kind not in "iuf":
        return a
    with np.errstate(all="ignore"):
        return a.astype(rng.choice(["f8", "f4", "i8", "i4", "i2", "u8", "u1", "?"]))


ARRAYS = (
    a_place,
    a_place,
    a_place,
    a_number,
    steps,
    order,
    fewer,
    more,
    turned,
    flat,
    empty,
    another_type,
)


# changes of the tree
def nodes(tree, path=()):
    """All places in a tree."""
    yield path
    for key, value in (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    ):
        yield from nodes(value, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def put(tree, path, value):
    if not path:
        return value
    at(tree, path[:-1])[path[-1]] = value
    return tree


def changed_value(rng, tree):
    """A number, a word or a truth value is another."""
    plain = [p for p in nodes(tree) if p and not isinstance(at(tree, p), dict | list)]
    if not plain:
        return tree
    path = plain[rng.integers(len(plain))]
    v, other = at(tree, path), at(tree, plain[rng.integers(len(plain))])
    whole = (
        int(rng.choice([*NEAR, 2**31]))
        if rng.random() < 0.7 or type(v) is not int
        else v + int(rng.choice([-1, 1]))
    )
    new = {bool: not v, int: whole}
    hexed = {"float": struct.pack(">d", rng.choice([np.nan, np.inf, -1.0, 0.0, 1e30])).hex()}
    value = new.get(type(v), hexed if type(v) is float else other)
    return put(tree, path, other if rng.random() < 0.1 else value)


def changed_node(rng, tree):
    """A part is another part of the tree, or is gone."""
    inner = [p for p in nodes(tree) if p]
    if not inner:
        return tree
    path, other = (inner[rng.integers(len(inner))] for _ in range(2))
    if rng.random() < 0.3:
        holder = at(tree, path[:-1])
        del holder[path[-1]]
        return tree
    return put(tree, path, copy.deepcopy(at(tree, other)))


def mutant(rng, tree, arrays):
    """A changed tree and arrays, what was done, and whether it must be refused."""
    tree, arrays, done, far = copy.deepcopy(tree), list(arrays), [], False
    places = [i for i, a in enumerate(arrays) if a.dtype in (np.int64, np.int32) and a.size]
    if places and rng.random() < 0.2:
        i, value = int(rng.choice(places)), int(rng.choice(FAR))
        arrays[i] = arrays[i].copy()
        arrays[i].flat[rng.integers(arrays[i].size)] = max(
            min(value, np.iinfo(arrays[i].dtype).max), np.iinfo(arrays[i].dtype).min
        )
        return tree, arrays, [f"array {i} holds {value}"], True
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        kind = rng.random()
        if arrays and kind < 0.5:
            i = (
                int(rng.choice(places))
                if places and rng.random() < 0.6
                else int(rng.integers(len(arrays)))
            )
            change = ARRAYS[rng.integers(len(ARRAYS))]
            arrays[i] = change(rng, arrays[i])
            done.append(f"array {i}: {change.__name__}")
        elif len(arrays) > 1 and kind < 0.6:
            i, j = rng.integers(len(arrays), size=2)
            arrays[i], arrays[j] = arrays[j], arrays[i]
            done.append(f"arrays {i} and {j} swapped")
        else:
            change = changed_value if kind < 0.85 else changed_node
            tree = change(rng, tree)
            done.append(change.__name__)
    return tree, arrays, done, far


def written(path, tree, arrays):
    parts = Parts(json.dumps({"mercer": "0", "kind": "x", "root": tree}).encode(), to_bytes(arrays))
    path.write_bytes(parts.head() + parts.tree + parts.payload)


# one file
def verdict(path, ask, far=False):
    """A word for what came of a file: "refused", "answered", the name of an error, or a sentence
    that begins with FAIL."""
    try:
        m = load(path)
    except ValueError as e:
        return "refused" if "cannot be loaded: " in str(e) else f"FAIL a bare ValueError: {e}"
    if far:
        return "FAIL a place outside its range was let through"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            ask(m)
    except Exception as e:  # whatever a wrong model says, but not of its bounds
        name = type(e).__name__
        return f"FAIL {name}: {e!s:.200}" if name in BAD or "out of bounds" in str(e) else name
    return "answered"


def child(corpus, start, stop, seed):
    """Files number start to stop; a line before and after each, so that a crash has a number."""
    import resource  # the fuzzer needs Unix, what it looks at does not

    from tests.store.corpus import asked

    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGALRM, _late)
    saved = sorted(Path(corpus).glob("*.json"))
    path = Path(corpus) / f"changed-{os.getpid()}.mercer"
    for i in range(start, stop):
        rng = np.random.default_rng((seed, i))
        name = saved[rng.integers(len(saved))]
        about = json.loads(name.read_text())
        with np.load(name.with_suffix(".npz")) as f:
            arrays = [f[str(k)] for k in range(about["arrays"])]
        tree, arrays, done, far = mutant(rng, about["tree"], arrays)
        print(i, about["name"], "; ".join(done), sep="\t", end="\t", flush=True)
        written(path, tree, arrays)
        signal.alarm(SECONDS)
        print(
            " ".join(verdict(path, lambda m, name=about["name"]: asked(name, m), far).split()),
            flush=True,
        )
        signal.alarm(0)
    path.unlink(missing_ok=True)


def _late(*_):
    """Out of all loops and compilers at once, which an exception would leave half done."""
    print("slow", flush=True)
    os._exit(SLOW)


def keep(folder, name, model):
    """A model of the corpus, taken apart."""
    tree, arrays = encode(model)
    path = Path(folder) / f"{len(list(Path(folder).glob('*.json'))):03d}.json"
    path.write_text(json.dumps({"name": name, "tree": tree, "arrays": len(arrays)}))
    np.savez(path.with_suffix(".npz"), **{str(i): a for i, a in enumerate(plain(arrays))})


def plain(arrays):
    return [np.asarray(a) for a in arrays]


def run(count, seed=0, *, bounds=True, names=None, out=sys.stderr, cache=None):
    """Change so many files of the corpus; how often each verdict came, and the failures."""
    from tests.store.corpus import models

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as fresh:
        for name, model in models(names):
            keep(folder, name, model)
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")])
            ),
        }
        env |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache or fresh} if bounds else {}
        start, found, failed = 0, Counter(), []
        while start < count:
            code = (
                f"from tests.store.fuzz import child; child({folder!r}, {start}, {count}, {seed})"
            )
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code],
                env=env,
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            lines = [line.split("\t") for line in done.stdout.splitlines()]
            for *what, said in lines if done.returncode in (0, SLOW) else lines[:-1]:
                found[said.split(" ")[0]] += 1
                failed += ["\t".join([*what, said])] if said.startswith("FAIL") else []
            if done.returncode == 0:
                break
            start = int(lines[-1][0]) + 1 if lines else count
            if done.returncode == SLOW:
                continue
            if not lines or done.returncode > 0:  # of this program itself
                raise RuntimeError(done.stderr[-2000:])
            last = "\t".join(lines[-1])
            failed.append(f"{last}\tFAIL ended by {done.returncode}: {done.stderr[-300:]}")
            found["FAIL"] += 1
            print(f"{failed[-1]}", file=out)
        return found, failed


if __name__ == "__main__":
    how_many, first_seed = (int(v) for v in (*sys.argv[1:], 0)[:2])
    verdicts, failures = run(how_many, first_seed)
    print(*failures, sep="\n")
    print(dict(verdicts))
    sys.exit(bool(failures))
