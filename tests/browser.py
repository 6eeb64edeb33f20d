"""A headless Chromium for tests of pages: its log, and layout faults at a given width."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.programs import needs, where

IN_BROWSER = needs("chromium", "chromedriver")

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb"),
)

FAULTS = """
const faults = [], shown = (node) => node.getClientRects().length && getComputedStyle(node).visibility !== 'hidden';
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (wide > 0) faults.push(`the page is ${wide} pixels too wide`);
for (const svg of document.querySelectorAll('svg')) {
  if (!shown(svg)) continue;
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter((text) => shown(text) && text.textContent.trim());
  const boxes = texts.map((text) => text.getBoundingClientRect());
  boxes.forEach((one, place) => {
    const said = texts[place].textContent;
    if (one.left < box.left - 1 || one.right > box.right + 1 || one.top < box.top - 1 || one.bottom > box.bottom + 1)
      faults.push(`${said} is clipped`);
    boxes.slice(place + 1).forEach((two, after) => {
      if (one.left < two.right - 1 && two.left < one.right - 1 && one.top < two.bottom - 1 && two.top < one.bottom - 1)
        faults.push(`${said} overlaps ${texts[place + 1 + after].textContent}`);
    });
  });
}
for (const node of document.querySelectorAll('h1, h2, p, li, label, button, summary, figcaption, .readout, caption')) {
  if (!shown(node) || node.closest('.skip, .scrolls')) continue;
  const box = node.getBoundingClientRect();
  if (box.right > innerWidth + 1 || box.left < -1 || node.scrollWidth > node.clientWidth + 1 && node.clientWidth)
    faults.push(`${node.tagName} ${node.textContent.slice(0, 40)} does not fit`);
}
for (const node of document.querySelectorAll('a, button, input, select, summary')) {
  if (matchMedia('print').matches || !node.checkVisibility() || node.closest('.skip')) continue;
  const {width, height} = (node.matches('[type=radio], [type=checkbox]') ? node.closest('label') : node)
    .getBoundingClientRect();
  if (Math.min(width, height) < 23.5) faults.push(`${node.outerHTML.slice(0, 60)} is ${width} by ${height} pixels`);
}
const linear = (one) => (one <= 10.3 ? one / 3294.6 : ((one / 255 + 0.055) / 1.055) ** 2.4);
const light = ([red, green, blue]) => 0.05 + 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
const colour = (text) => text.match(/[\\d.]+/g).map(Number), seen = new Set();
const ground = (node) => {
  const own = node ? colour(getComputedStyle(node).backgroundColor) : [255, 255, 255];
  return own.length === 3 || own[3] === 1 ? own : ground(node.parentElement);
};
const texts = 'h1, h2, h3, p, li, a, code, strong, label, legend, button, select, summary, figcaption, caption';
const others = 'th, td, dt, dd, small, .readout, .key, .step, text';
for (const node of document.querySelectorAll(`main :is(${texts}, ${others})`)) {
  if (!node.textContent.trim() || !node.checkVisibility() || node.closest(':disabled')) continue;
  const style = getComputedStyle(node), svg = node.closest('svg'), back = svg ? svg.parentElement : node;
  const both = [colour(svg ? style.fill : style.color), ground(back)].map(light);
  const contrast = Math.max(...both) / Math.min(...both);
  if (contrast < 4.5) seen.add(`a contrast of ${contrast.toFixed(2)}: ${node.tagName} ${node.className}`);
}
return [...faults, ...seen];
"""
"""JavaScript that lists what is clipped, overlaps, is wider than the window, too small to touch or hard to read.

Controls are at least 24 by 24 pixels (WCAG 2.5.8), and the contrast of texts is at least 4.5 (WCAG 1.4.3).
"""


@contextmanager
def browser(folder: Path) -> Iterator[webdriver.Chrome]:
    """Yield a browser with a separate profile."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(where("chromedriver"))))
    try:
        yield driver
    finally:
        driver.quit()


def resize(driver: webdriver.Chrome, width: int, *, media: str = "screen", dark: bool = False) -> None:
    """Set the window's width in pixels, and whether it emulates a screen or paper.

    Args:
        driver: The browser.
        width: Width in CSS pixels.
        media: Media type, `screen` or `print`.
        dark: Whether the page sees a preference for dark colours.
    """
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def faults(driver: webdriver.Chrome) -> list[str]:
    found: list[str] = driver.execute_script(FAULTS)
    return found


def logged(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """Return the console entries since the last call."""
    found: list[dict[str, Any]] = driver.get_log("browser")
    return found


TORN = """
const heights = arguments[0], width = 717, main = document.querySelector('main'), faults = new Set();
const shown = (node) => node.checkVisibility() && node.getClientRects().length > 0;
const named = (node) => `${node.tagName} ${node.textContent.trim().slice(0, 40)}`;
const leaf = (node) => {
  const first = node.matches('p, li, dt, tr, svg') ? null : [...node.children].find(shown);
  return first ? leaf(first) : node;
};
const after = (node) => {
  let next = node;
  do {
    while (!next.nextElementSibling) next = next.parentElement;
    next = next.nextElementSibling;
  } while (!shown(next));
  return leaf(next);
};
const begins = [...main.querySelectorAll(
  'h2, h3, figcaption, caption, summary, thead, .standing, .latest:has(+ ul), .extremes, .said, .total'
)].filter(shown);
const wholes = [...main.querySelectorAll('.plot, tr, .facts div')].filter(shown);
const lists = [...main.querySelectorAll('tbody, .facts')].map((list) => [...list.children].filter(shown));
const boxed = [...main.querySelectorAll('p, li, dd, tr, svg, span')].filter(shown);
for (const region of main.querySelectorAll('.scrolls'))
  if (shown(region) && getComputedStyle(region).overflowY !== 'visible') faults.add(`${named(region)} is cut`);
main.style.cssText = `columns: ${width}px; column-gap: 0; column-fill: auto; padding: 0; margin: 0; width: ${width}px`;
for (const height of heights) {
  main.style.height = `${height}px`;
  const { left, top } = main.getBoundingClientRect();
  const page = (box) => Math.floor((box.left - left + 1) / width);
  const pages = (node) => [...node.getClientRects()].map(page).sort((one, other) => one - other);
  for (const node of begins)
    if (pages(node).at(-1) !== pages(after(node))[0])
      faults.add(`${named(node)} is on the page before ${named(after(node))}`);
  for (const node of wholes) if (pages(node)[0] !== pages(node).at(-1)) faults.add(`${named(node)} is on two pages`);
  for (const rows of lists) {
    const on = rows.map((row) => pages(row)[0]);
    for (const one of new Set(rows.length > 1 ? on : []))
      if (on.filter((other) => other === one).length === 1) faults.add(`a page has only one row of ${named(rows[0])}`);
  }
  const boxes = boxed.flatMap((node) => [...node.getClientRects()]), last = Math.max(...boxes.map(page));
  const used = Math.max(...boxes.filter((box) => page(box) === last).map((box) => box.bottom)) - top;
  const whole = pages(main.querySelector('section:last-of-type'))[0] === last;
  if (last && !whole && used < height / 5) faults.add(`the last page is nearly empty, if pages have ${height} pixels`);
}
main.style.cssText = '';
return [...faults];
"""
"""JavaScript that lists what breaks badly between pages of paper, for pages of several heights.

Each page is a column: columns break where pages do (CSS Fragmentation), and their boxes can be read.
"""


def torn(driver: webdriver.Chrome) -> list[str]:
    """Return what breaks badly on paper, for ten heights around that of A4; the browser emulates paper already."""
    found: list[str] = driver.execute_script(TORN, list(range(900, 1100, 20)))
    return found
