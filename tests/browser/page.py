"""A Chromium that the tests drive, and what they ask of a page: contrast, overflow, console errors."""

import shutil
import tempfile
import time

CHROMIUM = "/usr/bin/chromium"
DRIVER = "/usr/bin/chromedriver"
WAIT_S = 15

# Every visible text of the page with the contrast of its colour to what is really behind it: backgrounds that let
# something through are laid over each other, opacity counts. WCAG 2.1, relative luminance.
CONTRAST_JS = r"""
const parse = (text) => {
    const n = text.match(/[\d.]+%?/g).map((part) => part.endsWith('%') ? parseFloat(part) * 2.55 : parseFloat(part))
    if (text.startsWith('color(srgb')) { n[0] *= 255; n[1] *= 255; n[2] *= 255 }
    return { rgb: n.slice(0, 3), a: n.length > 3 ? n[3] : 1 }
}
const over = (top, bottom) => top.rgb.map((c, i) => c * top.a + bottom[i] * (1 - top.a))
const behind = (element) => {
    if (!element) return parse(getComputedStyle(document.body).backgroundColor).rgb
    const own = parse(getComputedStyle(element).backgroundColor)
    return own.a >= 1 ? own.rgb : over(own, behind(element.parentElement))
}
const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
}
const found = []
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim()
    const element = walker.currentNode.parentElement
    if (!text || !element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue
    if (element.closest('.hidden, .skip, option, script, style')) continue
    let opacity = 1
    for (let e = element; e; e = e.parentElement) opacity *= parseFloat(getComputedStyle(e).opacity)
    const back = behind(element)
    const colour = parse(getComputedStyle(element).color)
    const fore = over({ rgb: colour.rgb, a: colour.a * opacity }, back)
    const [high, low] = [luminance(fore), luminance(back)].sort((a, b) => b - a)
    found.push([(high + 0.05) / (low + 0.05), text.slice(0, 40), element.tagName + '.' + element.className])
}
return found
"""


# What charts write beside their axes: they draw on canvases, which have no text to read.
LABELS_JS = r"""
window.labels = []
const draw = CanvasRenderingContext2D.prototype.fillText
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.labels.push(String(text))
    return draw.call(this, text, ...rest)
}
"""
TIMES_JS = r"""
return window.labels.flatMap((text) => {
    const found = /^(?:(\d+) (\w+)(?: (\d{4}))?,? )?(\d\d):(\d\d)$/.exec(text)
    if (!found) return []
    const [, day, month, year, hours, minutes] = found
    const at = day ? new Date(`${day} ${month} ${year ?? new Date().getFullYear()}`) : new Date()
    return [at.setHours(hours, minutes, 0, 0) / 1000]
})
"""


class Timeout(AssertionError):
    pass


class Page:
    """One browser with an empty profile of its own."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        self.profile = tempfile.mkdtemp(prefix="weir-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            f"--user-data-dir={self.profile}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.resize(1280, 900)
        self.media()

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    # ---------------------------------------------------------------------------------------------- environment

    def resize(self, width, height):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        )

    def media(self, shade="light", motion="no-preference"):
        features = [{"name": "prefers-color-scheme", "value": shade}, {"name": "prefers-reduced-motion", "value": motion}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def go(self, address, project="-"):
        """To a screen by its address below the project, as a link of the page would."""
        path = f"/p/{project}/{address}"
        self.js("""const link = document.createElement('a')
            link.href = arguments[0]
            document.body.append(link)
            link.click()
            link.remove()""", path)
        self.until(lambda: self.address() == path, f"the address {path}, not {self.address()}")
        self.until(lambda: self.text("main h1") and not self.all("main .loading"), "the data of the screen")

    def address(self):
        return self.js("return location.pathname + location.search")

    # ------------------------------------------------------------------------------------------------- looking

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def one(self, css):
        return self.until(lambda: next(iter(self.all(css)), None), css)

    def text(self, css):
        """Text of the first match, "" if there is none: read in one go, since a live list changes under our hands."""
        return self.js("return document.querySelector(arguments[0])?.innerText ?? ''", css)

    def texts(self, css):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", css)

    def has_text(self, css, text):
        return self.until(lambda: text in self.text(css), f"{text!r} in {css}, which says {self.text(css)!r}")

    def button(self, label, within="body"):
        """The button with this accessible text (hidden parts included); in a dialog, once it can be pressed."""
        find = """const ready = (b) => arguments[1] !== 'dialog' || (b.getClientRects().length > 0 && !b.disabled);
            return [...document.querySelectorAll(arguments[1] + ' button')]
            .find((b) => ready(b) && (b.textContent.replace(/\\s+/g, ' ').trim() === arguments[0] ||
                b.ariaLabel === arguments[0]))"""
        return self.until(lambda: self.js(find, label, within), f"a button {label!r}")

    def until(self, condition, what, seconds=None):
        """Polls until the condition gives something true; there is no other way to wait for a page. Without `seconds`: WAIT_S."""
        seconds = WAIT_S if seconds is None else seconds
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise Timeout(f"waited {seconds} s in vain for {what}")
            time.sleep(0.03)

    def focused(self):
        """What has the focus, as readers would name it."""
        return self.js("""const e = document.activeElement
            return e.ariaLabel || e.textContent.replace(/\\s+/g, ' ').trim() || e.tagName""")

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def press_with(self, modifier, key):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def watch_labels(self):
        """From now on labels() and label_times() have what charts write."""
        self.js(LABELS_JS)

    def labels(self):
        return self.js("return window.labels")

    def label_times(self):
        """The labels that are times, in seconds since 1970."""
        return self.js(TIMES_JS)

    # ------------------------------------------------------------------------------------------------- judging

    def weak_texts(self, minimum=4.5):
        found = self.js(CONTRAST_JS)
        assert len(found) > 10, f"only {len(found)} texts found: the page is not there"
        return [(round(ratio, 2), text, where) for ratio, text, where in found if ratio < minimum - 0.005]

    def overflow_px(self):
        return self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def console_errors(self):
        """What the page complained about since the last call; the log is emptied."""
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
