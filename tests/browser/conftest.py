"""Real Chromium opens pages from disk; a message on its console or a request to the network fails the test."""

import shutil

import pytest

ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def chromium():
    """Start Chromium for one file of tests: while its driver runs, no other test in this process can use asyncio."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: install the package chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="there is no playwright: install the extra [dev]")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def show(chromium):
    """Return a function that opens a page on disk, in a window of its own."""
    contexts, complaints = [], []

    def open_page(path, *, anchor="", width=1280, height=900, scheme="light", touch=False):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=touch,
            accept_downloads=True,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        address = path.as_uri()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: note_request(request.url, address))
        page.goto(address + anchor)
        page.wait_for_selector("html[data-ready]")
        return page

    def note_request(url, address):
        if not url.startswith(("data:", "blob:")) and url.split("#")[0] != address:
            complaints.append(f"requested {url}")

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
