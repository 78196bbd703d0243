"""What the app does with what it is given and asked."""

import asyncio
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from serving import until

import repeat_xai as rx
from repeat_xai.app import job, sessions
from repeat_xai.app import requests as room
from repeat_xai.app.encoder_cache import Shelf
from repeat_xai.app.requests import Desk, Form
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads
from repeat_xai.errors import ConfigurationError, ImageError, OutputError
from repeat_xai.experiments.settings import Network

NAME = "torchvision:squeezenet1_1=random"
ME, YOU = "my-page", "your-page"
FORM = Form(
    encoder=NAME,
    method="relax",
    other_encoder="",
    other_method="",
    estimator="fast",
    masks=150,
    repeats=10,
    pool=None,
    passes=10,
    size=64,
    seed=0,
)


@pytest.fixture
def desk(tmp_path):
    made = Desk(
        sessions=Sessions(tmp_path / "home"),
        uploads=Uploads(tmp_path / "home" / "uploads"),
        shelf=Shelf(device="cpu"),
        encoders=[Network.of(NAME), Network(name="efficientnet_lite0")],
        local=False,
    )
    for page in (ME, YOU):
        made.sessions.join(page, f"browser of {page}")
    return made


def give(desk, page, path):
    """Upload a photo from a page's own browser, and hand it over to the page."""
    return desk.receive(page, sent(desk, f"browser of {page}", path))


def sent(desk, browser, path):
    async def arriving():
        yield path.read_bytes()

    return asyncio.run(desk.uploads.receive(browser, path.name, arriving()))


def test_a_photo_given_is_explained_shown_and_kept(desk, upload, monkeypatch, tmp_path):
    monkeypatch.setattr(job, "PAUSE", 0.0)
    give(desk, ME, upload)
    assert list((tmp_path / "home" / "uploads").iterdir()) == []
    desk.begin(ME, FORM._replace(masks=250, size=160))
    news = list(desk.work(ME))
    root = desk.sessions.results
    pages = [page for one in news for page in one.pages or ()]
    assert len(set(pages)) == len(pages) == 2
    assert "so far masks 128" in (root / pages[0]).read_text()
    assert "so far" not in (root / pages[1]).read_text()
    files = dict(news[-1].files)
    assert list(files) == ["maps", "panel"]
    assert rx.Explanation.load(root / files["maps"]).photo.name == "cat.png"
    assert list(desk.work(ME)) == []


def files(desk):
    places = desk.sessions.photos, desk.sessions.results
    return [file for place in places for file in place.rglob("*") if file.is_file()]


def test_what_was_is_gone_when_something_new_begins_and_all_of_it_in_the_end(desk, upload, tmp_path):
    shutil.copy(upload, tmp_path / "dog.png")

    def names():
        return {file.name for file in files(desk)}

    give(desk, ME, upload)
    desk.begin(ME, FORM)
    list(desk.work(ME))
    assert {"cat.png", "cat.npz"} <= names()
    give(desk, ME, tmp_path / "dog.png")
    assert {file.name for file in files(desk) if "photos" in file.parts} == {"dog.png"}
    assert "cat.png" in names()  # the panel, no more the photo
    desk.begin(ME, FORM)
    assert names() == {"dog.png"}
    desk.sessions.end(ME)
    assert names() == set()


def test_a_photo_that_is_in_use_stays(desk, upload, tmp_path):
    shutil.copy(upload, tmp_path / "dog.png")
    first = give(desk, ME, upload)
    desk.begin(ME, FORM)
    give(desk, ME, tmp_path / "dog.png")
    assert first.path.exists()


def test_nobody_sees_what_another_gave(desk, upload):
    give(desk, ME, upload)
    with pytest.raises(ConfigurationError, match="no photo yet; upload one or pick a sample"):
        desk.begin(YOU, FORM)
    mine, yours = desk.sessions.of(ME).results, desk.sessions.of(YOU).results
    assert mine != yours
    assert len(mine.name) > 20


def test_a_photo_is_not_served_where_results_are(desk, upload):
    place = give(desk, ME, upload).path
    assert place.is_file()
    assert not place.is_relative_to(desk.sessions.results)


def test_what_is_no_photo_takes_the_last_ones_place(desk, upload):
    desk.pick(ME, 0)
    upload.write_text("no photo")
    with pytest.raises(ImageError, match=r"^cat.png: not an image"):
        give(desk, ME, upload)
    with pytest.raises(ConfigurationError, match="no photo yet"):
        desk.begin(ME, FORM)
    assert files(desk) == []


def test_a_photo_that_does_not_arrive_takes_the_last_ones_place_too(desk, upload):
    give(desk, ME, upload)
    key = sent(desk, f"browser of {ME}", upload)
    shutil.rmtree(desk.uploads.folder / key)
    with pytest.raises(ImageError, match=r"^cat.png: did not arrive; give it again"):
        desk.receive(ME, key)
    with pytest.raises(ConfigurationError, match="no photo yet"):
        desk.begin(ME, FORM)


def test_an_upload_belongs_to_the_browser_that_sent_it_and_is_taken_once(desk, upload):
    key = sent(desk, f"browser of {YOU}", upload)
    for page, name in ((ME, key), (YOU, "another"), (YOU, None), (YOU, [key])):
        with pytest.raises(ImageError, match="did not arrive; upload it again"):
            desk.receive(page, name)
    assert desk.receive(YOU, key).name == "cat.png"
    with pytest.raises(ImageError, match="did not arrive; upload it again"):
        desk.receive(YOU, key)


@pytest.mark.parametrize("step", ["pages", "save"])
def test_what_cannot_be_written_is_said_and_ends_the_work(desk, monkeypatch, step):
    def full(*_, **__):
        raise OutputError(f"{desk.sessions.of(ME).written}/cat.npz: cannot be written (No space left on device)")

    monkeypatch.setattr(room, step, full)
    desk.pick(ME, 0)
    work = desk.begin(ME, FORM)
    *_, last = desk.work(ME)
    assert (last.state.end, last.state.said) == ("failed", "cat.npz: cannot be written (No space left on device)")
    assert until(lambda: work.state.end in ("cancelled", "done"))


def test_no_place_to_write_is_said_at_once(desk):
    desk.sessions.results.parent.write_text("a file")
    desk.pick(ME, 0)
    with pytest.raises(OutputError, match=r"^nothing can be written on the server \(Not a directory\)"):
        desk.begin(ME, FORM)


def test_a_session_that_has_ended_is_not_begun_again_by_what_was_under_way(desk, upload):
    give(desk, ME, upload)
    desk.begin(ME, FORM)
    session = desk.sessions.of(ME)
    desk.sessions.end(ME)
    assert list(desk.work(ME)) == []
    desk.cancel(ME)
    assert desk.sessions.known(ME) is None
    with pytest.raises(OutputError, match="this page was closed; load it again"):
        session.fresh(session.photos)
    assert files(desk) == []


def test_a_session_left_alone_ends_and_one_in_use_does_not(desk, upload, tmp_path):
    give(desk, ME, Path(shutil.copy(upload, tmp_path / "dog.png")))
    gone = desk.begin(ME, FORM)
    give(desk, YOU, upload)
    desk.begin(YOU, FORM._replace(masks=20_000))
    desk.sessions.of(YOU).used = desk.sessions.of(ME).used = time.monotonic() - sessions.IDLE - 1
    work = desk.work(YOU)
    next(work)
    desk.sessions.end_idle()
    assert [file.name for file in files(desk)] == ["cat.png"]
    assert gone.state.end == "cancelled"
    assert next(work).state.end is None
    desk.cancel(YOU)


def test_the_server_looks_for_them_and_ends_all_when_it_ends(desk, upload, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "PATROL", 0.01)
    give(desk, ME, Path(shutil.copy(upload, tmp_path / "dog.png")))
    with desk.sessions.ageing():
        give(desk, YOU, upload)
        desk.sessions.of(ME).used -= sessions.IDLE + 1
        assert until(lambda: desk.sessions.known(ME) is None)
        assert desk.sessions.known(YOU) is not None
    assert files(desk) == []


@pytest.mark.parametrize("step", ["pages", "save"])
def test_what_is_written_while_the_page_is_closed_goes_too(desk, upload, monkeypatch, step):
    real = getattr(room, step)

    def closed_meanwhile(*given, **options):
        leaving.start()
        leaving.join(0.2)
        return real(*given, **options)

    leaving = threading.Thread(target=desk.sessions.end, args=(ME,))
    monkeypatch.setattr(room, step, closed_meanwhile)
    give(desk, ME, upload)
    desk.begin(ME, FORM._replace(masks=100))
    assert len(list(desk.work(ME))) >= 1
    leaving.join()
    assert files(desk) == []


def test_nothing_is_written_once_the_page_is_closed(desk, upload, monkeypatch):
    give(desk, ME, upload)
    under_way = desk.begin(ME, FORM._replace(masks=100))
    real = under_way.states

    def closed_meanwhile():
        for state in real():
            if state.found:
                desk.sessions.end(ME)
            yield state

    monkeypatch.setattr(under_way, "states", closed_meanwhile)
    assert not any(one.pages or one.files for one in desk.work(ME))
    assert files(desk) == []


def test_work_is_done_once(desk):
    desk.pick(ME, 1)
    desk.begin(ME, FORM)
    first, second = desk.work(ME), desk.work(ME)
    assert next(first).state.end is None
    assert list(second) == []
    desk.cancel(ME)


def test_work_begun_anew_ends_what_was_under_way(desk):
    desk.pick(ME, 1)
    first = desk.begin(ME, FORM)
    second = desk.begin(ME, FORM._replace(seed=1))
    assert (first.state.end, second.state.end) == ("cancelled", None)
    desk.sessions.end(ME)
    assert second.state.end == "cancelled"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"masks": None}, "masks must be a whole number of at least 1, not None"),
        ({"seed": None}, "seed must be"),
        ({"seed": 0.5}, "seed must be"),
        ({"passes": 1}, "passes must be a whole number of at least 2, not 1"),  # as the command says
        ({"method": None}, "unknown method 'None'; choose one of: repeat, relax"),
        ({"other_method": ["lime"]}, "unknown method"),
        ({"masks": 10**6}, "masks: 1,000,000 is too many here; give at most 100,000"),
        ({"pool": 10**6}, "pool: 1,000,000 is too many here; give at most 20,000"),
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
        ({"other_method": "relax"}, "compared with itself"),
        ({"other_encoder": NAME}, "compared with itself"),
    ],
)
def test_what_makes_no_sense_is_refused(desk, changes, words):
    with pytest.raises(ConfigurationError, match=words):
        desk.wanted(FORM._replace(**changes))


def test_what_is_compared_differs_in_what_is_chosen(desk):
    first, second = desk.wanted(FORM._replace(other_method="saliency"))
    assert (first.method, second.method, first.network) == ("relax", "saliency", second.network)
    first, second = desk.wanted(FORM._replace(other_encoder="efficientnet_lite0"))
    assert (first.method, second.method) == ("relax", "relax")
    assert second.network == Network(name="efficientnet_lite0", size=64)


def test_an_empty_field_is_as_good_as_none(desk):
    (one,) = desk.wanted(FORM._replace(pool=0, size=0))
    assert (one.budget.pool, one.network.size) == ("auto", None)


@pytest.mark.parametrize("number", [4, -1, None, 0.5, "0", True])
def test_there_are_no_other_samples(desk, number):
    with pytest.raises(ConfigurationError, match=f"there is no sample {number}; pick one of those shown"):
        desk.pick(ME, number)


def test_only_who_sits_here_is_told_where_samples_lie(desk):
    assert desk.pick(ME, 0).called == "chelsea.png"
    here = replace(desk, local=True).pick(ME, 0)
    assert (here.called, here.name) == (str(here.path), "chelsea.png")
