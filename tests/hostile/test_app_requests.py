"""Tests that everything that is sent to the app is answered in one line and leaves nothing behind."""

import re
from contextlib import closing

import httpx
import pytest
from apps import PAGE, app_of, browser, call, handler_in
from hostile.form_cases import CALLS
from hostile.upload_cases import UPLOADS
from hostile.verdicts import Verdict

pytest.importorskip("gradio", reason="there is no Gradio: install the extra [serve]")

REFUSAL = re.compile(r'<p class="note">(.*?)</p>', re.DOTALL)


@pytest.fixture(scope="module")
def handler(tmp_path_factory):
    return handler_in(tmp_path_factory.mktemp("app"))


@pytest.fixture(scope="module")
def client(handler):
    with app_of(handler) as address, closing(browser(address)) as opened:
        assert call(opened, 1, [], event={"number": 0}).status_code == 200
        yield opened


def verdict(answer: httpx.Response) -> Verdict:
    """Return the verdict on an answer; a refusal is one line, as text or on the page."""
    if answer.status_code == 200:
        shown = REFUSAL.search(answer.text.encode().decode("unicode_escape", errors="replace"))
        return Verdict("refused", shown[1]) if shown else Verdict("right", answer.text)
    refused = 400 <= answer.status_code < 500 and len(answer.text.splitlines()) == 1
    return Verdict("refused" if refused else "traceback", f"{answer.status_code} {answer.text}")


@pytest.mark.parametrize("case", CALLS, ids=str)
def test_values_that_the_page_never_sends_are_answered(case, client, judge, capfd):
    try:
        answer = client.post("/gradio_api/run/predict", content=case.content, headers={"Content-Type": case.kind})
    except httpx.TimeoutException:
        judge("form values", Verdict("hang"), case)
    judge("form values", verdict(answer), case)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("case", UPLOADS, ids=str)
def test_uploads_that_the_page_never_sends_are_answered(case, client, handler, judge, tmp_path, capfd):
    headers = {"Content-Type": "application/octet-stream"} | case.headers
    try:
        answer = client.post(f"/photo?{case.query}", content=case.content, headers=headers)
        if answer.status_code == 200:
            answer = call(client, 0, [], event={"upload": answer.text})
    except httpx.TimeoutException:
        judge("uploads", Verdict("hang"), case)
    result = verdict(answer)
    if result.kind == "right":
        (name,) = re.findall(r"<figcaption>(.*?) <small>", answer.json()["data"][0])
        result = result._replace(text=name)
    judge("uploads", result, case)
    home = handler.uploads.folder.parent
    assert list(handler.uploads.folder.glob("*")) == []
    kept = [file for file in home.rglob("*") if file.is_file()]
    assert len(kept) <= 1
    assert all(file.is_relative_to(handler.sessions.get(PAGE).photo_folder) for file in kept)
    assert "Traceback" not in capfd.readouterr().err
