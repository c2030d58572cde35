"""Makes the pictures of the documents anew, from the scripts of the tutorial: `./dev python docs/pictures.py`. Needs Chromium.

A picture is a part of the page of `ltc explain --html`, at most 150 kB.
"""

import base64
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser  # noqa: E402
from following import blocks  # noqa: E402

# Script of the tutorial, first and last part of the page, how often the timeline is enlarged, and the height at most.
PICTURES = {
    "explain": ("slow.py", "summary", "findings", 0, 800),
    "waiting": ("slow.py", "timeline", "timeline", 4, 400),
    "step": ("mnist.py", "panes", "panes", 0, 560),
}
PREPARE = """
  const root = document.documentElement, click = (selector) => document.querySelector(selector).click();
  while (!root.dataset.drawn) await new Promise((done) => setTimeout(done, 10));
  for (let i = 0; i < {zoom}; i++) click("[data-zoom=in]");
  document.getElementById("{first}").scrollIntoView();
  await new Promise((done) => setTimeout(done, 500));
  const first = document.getElementById("{first}").getBoundingClientRect(), last = document.getElementById("{last}").getBoundingClientRect();
  return {{x: 0, y: first.top + scrollY, width: last.right + 16, height: Math.min(last.bottom - first.top, {height}), scale: 1}};
"""


def write_scripts(folder):
    for how, name, _, code in blocks((ROOT / "docs/tutorial.md").read_text()):
        if how == "Write":
            (folder / name).write_text(code)


def explain(folder, script):
    """The page of a run that compiles its programs."""
    page = folder / f"{script}.html"
    environment = {**os.environ, "LTC_CACHE_DIR": str(folder / f"{script}.cache")}
    environment["PYTHONPATH"] += f":{ROOT / 'samples/digits'}"
    subprocess.run([sys.executable, "-m", "ltc", "explain", "--html", page, script], cwd=folder, env=environment, check=True, capture_output=True)
    return page


def picture(page, folder, first, last, zoom, height):
    with Browser(page, folder, 1200, 900) as browser:
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        clip = browser.run(PREPARE.format(first=first, last=last, zoom=zoom, height=height))
        data = browser.call("Page.captureScreenshot", format="png", clip=clip)["data"]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB").quantize(64)


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_scripts(folder)
        for title, (script, *part) in PICTURES.items():
            picture(explain(folder, script), folder, *part).save(ROOT / f"docs/pictures/{title}.png", optimize=True)


if __name__ == "__main__":
    main()
