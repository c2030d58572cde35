"""Pages of `ltc explain`: the data in them, and one in Chromium."""

import base64
import contextlib
import json
import re
import zlib

from browser import Browser

DRAWN = """
  const root = document.documentElement;
  while (!root.dataset.drawn && !root.dataset.failed) await new Promise((done) => setTimeout(done, 10));
  return root.dataset.failed || Number(root.dataset.drawn);
"""


def unpacked(text):
    """Data of the runs of a page."""
    packed = re.findall(r'<script type="text/plain" class="run">([^<]*)</script>', text)
    return [json.loads(zlib.decompress(base64.b64decode(data))) for data in packed]


@contextlib.contextmanager
def opened(text, folder, width=1440):
    """The browser with the page drawn in it. Its scripts find the object of the page as `page`."""
    (folder / "page.html").write_text(text.replace("page = new Page(", "page = window.page = new Page("))
    with Browser(folder / "page.html", folder, width) as browser:
        drawn = browser.run(DRAWN)
        assert isinstance(drawn, int), drawn
        yield browser
