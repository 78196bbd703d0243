"""The handling of users' requests: photos, jobs, and what is removed when a page is closed."""

import asyncio
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from serving import until

import repeat_xai as rx
from repeat_xai.app import job as job_module
from repeat_xai.app import request_handler as handler_module
from repeat_xai.app import sessions
from repeat_xai.app.encoder_cache import EncoderCache
from repeat_xai.app.request_handler import FormValues, RequestHandler
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads
from repeat_xai.errors import ConfigurationError, ImageError, OutputError
from repeat_xai.experiments.settings import EncoderSpec

NAME = "torchvision:squeezenet1_1=random"
ME, YOU = "my-page", "your-page"
FORM = FormValues(
    encoder=NAME,
    method="relax",
    other_encoder="",
    other_method="",
    estimator="fast",
    masks=150,
    repeats=10,
    budget=None,
    passes=10,
    size=64,
    seed=0,
)


@pytest.fixture
def handler(tmp_path):
    handler = RequestHandler(
        sessions=Sessions(tmp_path / "home"),
        uploads=Uploads(tmp_path / "home" / "uploads"),
        encoder_cache=EncoderCache(device="cpu"),
        encoder_specs=[EncoderSpec.of(NAME), EncoderSpec(name="efficientnet_lite0")],
        local=False,
    )
    for page in (ME, YOU):
        handler.sessions.join(page, f"browser of {page}")
    return handler


def give(handler, page, path):
    """Upload a photo from a page's own browser, and let the page take it."""
    return handler.receive_photo(page, sent(handler, f"browser of {page}", path))


def sent(handler, browser, path):
    async def arriving():
        yield path.read_bytes()

    return asyncio.run(handler.uploads.receive(browser, path.name, arriving()))


@pytest.mark.slow
def test_a_photo_is_explained_shown_and_saved(handler, upload, monkeypatch, tmp_path):
    monkeypatch.setattr(job_module, "POLL_SECONDS", 0.0)
    give(handler, ME, upload)
    assert list((tmp_path / "home" / "uploads").iterdir()) == []
    handler.create_job(ME, FORM._replace(masks=250, size=160))
    updates = list(handler.job_updates(ME))
    root = handler.sessions.result_folder
    pages = [page for update in updates for page in update.pages or ()]
    assert len(set(pages)) == len(pages) == 2
    assert "preview: masks 128 so far" in (root / pages[0]).read_text()
    assert "preview: " not in (root / pages[1]).read_text()
    files = dict(updates[-1].files)
    assert list(files) == ["maps", "panel"]
    assert rx.Explanation.load(root / files["maps"]).photo.name == "cat.png"
    assert list(handler.job_updates(ME)) == []


def files(handler):
    folders = handler.sessions.photo_folder, handler.sessions.result_folder
    return [file for folder in folders for file in folder.rglob("*") if file.is_file()]


@pytest.mark.slow
def test_older_files_are_removed_when_a_job_is_created_and_all_when_the_session_ends(handler, upload, tmp_path):
    shutil.copy(upload, tmp_path / "dog.png")

    def names():
        return {file.name for file in files(handler)}

    give(handler, ME, upload)
    handler.create_job(ME, FORM)
    list(handler.job_updates(ME))
    assert {"cat.png", "cat.npz"} <= names()
    give(handler, ME, tmp_path / "dog.png")
    assert {file.name for file in files(handler) if "photos" in file.parts} == {"dog.png"}
    assert "cat.png" in names()  # the panel of that name, not the photo
    handler.create_job(ME, FORM)
    assert names() == {"dog.png"}
    handler.sessions.end(ME)
    assert names() == set()


def test_a_photo_that_a_job_uses_is_not_removed(handler, upload, tmp_path):
    shutil.copy(upload, tmp_path / "dog.png")
    first = give(handler, ME, upload)
    handler.create_job(ME, FORM)
    give(handler, ME, tmp_path / "dog.png")
    assert first.path.exists()


def test_a_page_has_neither_photo_nor_results_of_another_page(handler, upload):
    give(handler, ME, upload)
    with pytest.raises(ConfigurationError, match="no photo yet; upload one or pick a sample"):
        handler.create_job(YOU, FORM)
    mine, yours = handler.sessions.get(ME).result_folder, handler.sessions.get(YOU).result_folder
    assert mine != yours
    assert len(mine.name) > 20


def test_a_photo_is_not_in_the_folder_that_is_served(handler, upload):
    path = give(handler, ME, upload).path
    assert path.is_file()
    assert not path.is_relative_to(handler.sessions.result_folder)


def test_a_file_that_is_no_photo_replaces_the_photo_before(handler, upload):
    handler.pick_sample(ME, 0)
    upload.write_text("no photo")
    with pytest.raises(ImageError, match=r"^cat.png: not an image"):
        give(handler, ME, upload)
    with pytest.raises(ConfigurationError, match="no photo yet"):
        handler.create_job(ME, FORM)
    assert files(handler) == []


def test_a_photo_that_does_not_arrive_replaces_the_photo_before(handler, upload):
    give(handler, ME, upload)
    key = sent(handler, f"browser of {ME}", upload)
    shutil.rmtree(handler.uploads.folder / key)
    with pytest.raises(ImageError, match=r"^cat.png: did not arrive"):
        handler.receive_photo(ME, key)
    with pytest.raises(ConfigurationError, match="no photo yet"):
        handler.create_job(ME, FORM)


def test_an_upload_belongs_to_the_browser_that_sent_it_and_is_taken_once(handler, upload):
    key = sent(handler, f"browser of {YOU}", upload)
    for page, name in ((ME, key), (YOU, "another"), (YOU, None), (YOU, [key])):
        with pytest.raises(ImageError, match="did not arrive"):
            handler.receive_photo(page, name)
    assert handler.receive_photo(YOU, key).name == "cat.png"
    with pytest.raises(ImageError, match="did not arrive"):
        handler.receive_photo(YOU, key)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["result_pages", "save_files"])
def test_a_result_that_cannot_be_written_fails_the_job(handler, monkeypatch, step):
    def full(*_, **__):
        raise OutputError(f"{handler.sessions.get(ME).job_folder}/cat.npz: cannot be written (No space left on device)")

    monkeypatch.setattr(handler_module, step, full)
    handler.pick_sample(ME, 0)
    job = handler.create_job(ME, FORM)
    *_, last = handler.job_updates(ME)
    assert (last.state.end, last.state.message) == ("failed", "cat.npz: cannot be written (No space left on device)")
    assert until(lambda: job.state.end in ("cancelled", "done"))


def test_a_server_that_cannot_write_refuses_the_job(handler):
    handler.sessions.result_folder.parent.write_text("a file")
    handler.pick_sample(ME, 0)
    with pytest.raises(OutputError, match=r"^nothing can be written on the server \(Not a directory\)"):
        handler.create_job(ME, FORM)


def test_a_session_that_has_ended_is_not_revived_by_its_job(handler, upload):
    give(handler, ME, upload)
    handler.create_job(ME, FORM)
    session = handler.sessions.get(ME)
    handler.sessions.end(ME)
    assert list(handler.job_updates(ME)) == []
    handler.cancel_job(ME)
    assert handler.sessions.find(ME) is None
    with pytest.raises(OutputError, match="this page was closed; load it again"):
        session.new_folder(session.photo_folder)
    assert files(handler) == []


@pytest.mark.slow
def test_an_idle_session_ends_and_one_in_use_does_not(handler, upload, tmp_path):
    give(handler, ME, Path(shutil.copy(upload, tmp_path / "dog.png")))
    idle_job = handler.create_job(ME, FORM)
    give(handler, YOU, upload)
    handler.create_job(YOU, FORM._replace(masks=20_000))
    for page in (ME, YOU):
        handler.sessions.get(page).last_used = time.monotonic() - sessions.MAX_IDLE_SECONDS - 1
    updates = handler.job_updates(YOU)
    next(updates)
    handler.sessions.end_idle()
    assert [file.name for file in files(handler)] == ["cat.png"]
    assert idle_job.state.end == "cancelled"
    assert next(updates).state.end is None
    handler.cancel_job(YOU)


def test_regular_cleanup_ends_idle_sessions_and_at_last_all(handler, upload, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "CLEANUP_SECONDS", 0.01)
    give(handler, ME, Path(shutil.copy(upload, tmp_path / "dog.png")))
    with handler.sessions.regular_cleanup():
        give(handler, YOU, upload)
        handler.sessions.get(ME).last_used -= sessions.MAX_IDLE_SECONDS + 1
        assert until(lambda: handler.sessions.find(ME) is None)
        assert handler.sessions.find(YOU) is not None
    assert files(handler) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", ["result_pages", "save_files"])
def test_files_written_while_the_page_is_closed_are_removed_too(handler, upload, monkeypatch, step):
    real = getattr(handler_module, step)

    def close_meanwhile(*arguments, **options):
        leaving.start()
        leaving.join(0.2)
        return real(*arguments, **options)

    leaving = threading.Thread(target=handler.sessions.end, args=(ME,))
    monkeypatch.setattr(handler_module, step, close_meanwhile)
    give(handler, ME, upload)
    handler.create_job(ME, FORM._replace(masks=100))
    assert len(list(handler.job_updates(ME))) >= 1
    leaving.join()
    assert files(handler) == []


@pytest.mark.slow
def test_nothing_is_written_once_the_page_is_closed(handler, upload, monkeypatch):
    give(handler, ME, upload)
    job = handler.create_job(ME, FORM._replace(masks=100))
    real = job.states

    def close_meanwhile():
        for state in real():
            if state.explanations:
                handler.sessions.end(ME)
            yield state

    monkeypatch.setattr(job, "states", close_meanwhile)
    assert not any(update.pages or update.files for update in handler.job_updates(ME))
    assert files(handler) == []


def test_a_job_runs_only_once(handler):
    handler.pick_sample(ME, 1)
    handler.create_job(ME, FORM)
    first, second = handler.job_updates(ME), handler.job_updates(ME)
    assert next(first).state.end is None
    assert list(second) == []
    handler.cancel_job(ME)


def test_a_new_job_cancels_the_one_before(handler):
    handler.pick_sample(ME, 1)
    first = handler.create_job(ME, FORM)
    second = handler.create_job(ME, FORM._replace(seed=1))
    assert (first.state.end, second.state.end) == ("cancelled", None)
    handler.sessions.end(ME)
    assert second.state.end == "cancelled"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"masks": None}, "masks must be a whole number of at least 1, not None"),
        ({"seed": None}, "seed must be"),
        ({"seed": 0.5}, "seed must be"),
        ({"passes": 1}, "passes must be a whole number of at least 2, not 1"),  # as the command says
        ({"method": None}, "unknown method 'None'; choose one of: repeat, relax"),
        ({"other_method": ["lime"]}, "unknown method"),
        ({"masks": 10**6}, "masks: 1,000,000 is too many here; give at most 100,000"),
        ({"budget": 10**6}, "budget: 1,000,000 is too many here; give at most 20,000"),
        (
            {"method": "repeat", "estimator": "exact", "masks": 10**5, "repeats": 10**6},
            "100,000,000,001 encoder calls are too many here; ask for at most 200,000",
        ),
        ({"masks": 10**5, "other_method": "saliency", "passes": 10**5}, "300,001 encoder calls are too many"),
        ({"encoder": 5}, "unknown encoder '5'"),
        ({"estimator": "magic"}, "unknown estimator"),
        ({"size": 2000}, "an input of 2000×2000 pixels is too large here; give at most 1024"),
        ({"encoder": "torchvision:alexnet"}, "unknown encoder 'torchvision:alexnet'; choose one of: torchvision:squ"),
        ({"encoder": None}, "no encoder is chosen; choose one"),
        ({"other_method": "relax"}, "would equal the first"),
        ({"other_encoder": NAME}, "would equal the first"),
    ],
)
def test_form_values_that_make_no_sense_are_refused(handler, changes, message):
    with pytest.raises(ConfigurationError, match=message):
        handler.job_requests(FORM._replace(**changes))


def test_compared_requests_differ_in_the_method_or_the_encoder_chosen(handler):
    first, second = handler.job_requests(FORM._replace(other_method="saliency"))
    assert (first.method, second.method, first.encoder_spec) == ("relax", "saliency", second.encoder_spec)
    first, second = handler.job_requests(FORM._replace(other_encoder="efficientnet_lite0"))
    assert (first.method, second.method) == ("relax", "relax")
    assert second.encoder_spec == EncoderSpec(name="efficientnet_lite0", size=64)


def test_zero_stands_for_an_automatic_budget_and_size(handler):
    (request,) = handler.job_requests(FORM._replace(budget=0, size=0))
    assert (request.settings.budget, request.encoder_spec.size) == ("auto", None)


@pytest.mark.parametrize("number", [4, -1, None, 0.5, "0", True])
def test_a_sample_that_does_not_exist_is_refused(handler, number):
    with pytest.raises(ConfigurationError, match=f"there is no sample {number}; pick one of those shown"):
        handler.pick_sample(ME, number)


def test_only_a_local_user_sees_the_path_of_a_sample(handler):
    assert handler.pick_sample(ME, 0).snippet_path == "chelsea.png"
    photo = replace(handler, local=True).pick_sample(ME, 0)
    assert (photo.snippet_path, photo.name) == (str(photo.path), "chelsea.png")
