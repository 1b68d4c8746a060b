"""Debian's Chromium without a screen, driven by Selenium: opens pages, and notes errors and requests."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 60
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--no-first-run", "--window-size=1280,900"),
)
SERIOUS = ("serious", "critical")


def missing_for_browser() -> str | None:
    """What tests in a browser lack here, in words; None where they can run."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        return "needs Chromium (apt install chromium chromium-driver)"
    lacking = [name for name in ("selenium", "axe_core_python") if importlib.util.find_spec(name) is None]
    return f"needs the Python package {lacking[0]} (pip install 'inakit[dev]')" if lacking else None


class Browser:
    """A browser with one page open at a time."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, *, width: int = 1280, theme: str = "light") -> None:
        """Open a report and wait until it is there; anything that was noted of the last page is forgotten."""
        self.visit(page, width=width, theme=theme)
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def visit(self, page: Path, *, width: int = 1280, theme: str = "light") -> None:
        """Open any page; anything that was noted of the last page is forgotten."""
        self.resize(width)
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(page.resolve().as_uri())

    def resize(self, width: int, height: int = 900) -> None:
        """Give the page a width and a height, in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script gives in the page."""
        return self.driver.execute_script(f"return {script}", *arguments)

    def wait(self, condition: str) -> None:
        """Wait until a condition holds in the page. Raises selenium's `TimeoutException`."""
        from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

        WebDriverWait(self.driver, PATIENCE_S, poll_frequency=0.05).until(lambda _: self.run(condition))

    def find(self, selector: str) -> Any:
        """The first element that a CSS selector finds."""
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        """All elements that a CSS selector finds."""
        return list(self.driver.find_elements("css selector", selector))

    def texts(self, selector: str) -> list[str]:
        """What the elements say that a CSS selector finds."""
        return [str(text) for text in self.run(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")]

    def press(self, text: str) -> None:
        """Press the button with a text."""
        script = "[...document.querySelectorAll('button')].find(e => e.textContent.trim() === arguments[0])"
        chosen = self.run(script, text)
        self.run("arguments[0].scrollIntoView({block: 'center'})", chosen)
        chosen.click()

    def point_at(self, element: Any) -> None:
        """Move the mouse to the middle of an element."""
        from selenium.webdriver import ActionChains  # noqa: PLC0415

        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.driver).move_to_element(element).perform()

    def keys(self, element: Any, *keys: str) -> None:
        """Send keys to an element that has the focus."""
        self.run("arguments[0].focus()", element)
        element.send_keys(*keys)

    @property
    def errors(self) -> list[str]:
        """What the console says, warnings included, since the page was opened."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    @property
    def requests(self) -> list[str]:
        """What the page asked for since it was opened, besides itself and what it has in it."""
        logged = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        sent = [each["params"]["request"]["url"] for each in logged if each["method"] == "Network.requestWillBeSent"]
        own = self.driver.current_url.split("#")[0]
        return [url for url in sent if url.split("#")[0] != own and not url.startswith(("data:", "blob:"))]

    def faults(self) -> list[str]:
        """What axe-core finds that is serious or worse: the rule, and the first element that breaks it."""
        axe = importlib.util.find_spec("axe_core_python")
        assert axe is not None and axe.submodule_search_locations is not None
        self.driver.execute_script(Path(axe.submodule_search_locations[0], "axe.min.js").read_text())
        script = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
        found = self.driver.execute_async_script(script)["violations"]
        return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in SERIOUS]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def pdf(self) -> bytes:
        """The page printed on A4."""
        import base64  # noqa: PLC0415

        printed = {"printBackground": True, "preferCSSPageSize": True}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", printed)["data"])


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser that ends with the block."""
    from selenium import webdriver  # noqa: PLC0415
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(PATIENCE_S)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
