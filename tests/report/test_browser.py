"""The page as a browser lays it out: nothing sticks out at phone and desktop width, and the first
screen has the score."""

import html as escaping
import json
import os
import re
import shutil
import subprocess

import pytest

from mercer.report import html
from tests.report.examples import EXAMPLES, hostile, wide

pytestmark = pytest.mark.browser
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "headless_shell",
    "msedge",
)
# The page runs no script, so one outside it measures the frame that the page fills.
FRAME = """<!DOCTYPE html><body style="margin:0"><iframe width="{width}" height="{height}" style="border:0" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const inside = document.querySelector("iframe").contentDocument, root = inside.documentElement, body = inside.body;
  const edge = body.getBoundingClientRect().right - parseFloat(inside.defaultView.getComputedStyle(body).paddingRight);
  const out = [...body.querySelectorAll("*")].filter(e => !e.closest(".box, svg") && e.getBoundingClientRect().right > edge + 1);
  const box = name => inside.querySelector(name)?.getBoundingClientRect() ?? {{}};
  document.body.textContent = "MEASURED" + JSON.stringify({{
    scroll: root.scrollWidth, client: root.clientWidth, out: out.map(e => e.tagName + "." + e.className),
    boxes: inside.querySelectorAll(".box").length,
    verdict: box(".verdict").bottom, figure: box("#scores .rows").top, end: box("#scores .rows").bottom,
  }}) + "END";
}};
</script>"""


def browser():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH")
    return found


def measure(page, width, height, folder):
    frame = folder / "frame.html"
    frame.write_text(
        FRAME.format(width=width, height=height, page=escaping.escape(page)), encoding="utf-8"
    )
    flags = [
        "--headless",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1600,1200",
        "--dump-dom",
    ]
    flags += ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    done = subprocess.run(
        [browser(), *flags, frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r"MEASURED(.*)END", done.stdout, re.S)
    assert found, f"the browser measured nothing: {done.stderr[-2000:]}"
    return json.loads(escaping.unescape(found[1]))


PAGES = {**EXAMPLES, "wide": wide, "hostile": lambda: hostile("<b>שלום " + "x" * 3000)}


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)], ids=["phone", "desktop"])
def test_nothing_sticks_out(make, width, height, tmp_path):
    seen = measure(html(make()), width, height, tmp_path)
    assert seen["client"] in range(width - 20, width + 1)  # a scroll bar may take some
    assert seen["scroll"] <= seen["client"]
    assert seen["out"] == []
    assert seen["boxes"] >= 3


@pytest.mark.parametrize("make", EXAMPLES.values(), ids=EXAMPLES)
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)], ids=["phone", "desktop"])
def test_first_screen_has_score_and_verdict(make, width, height, tmp_path):
    seen = measure(html(make()), width, height, tmp_path)
    assert seen["verdict"] < height
    assert seen["end"] < height
