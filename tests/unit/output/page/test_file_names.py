"""Pages show names of files and no folders of the machine that made them."""

from pathlib import Path

import pytest

from repeat_xai.output.page.file_names import file_name, image_names, paths_in, without_folders, without_paths


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/cat.png", "cat.png"),
        ("/home/ann lee/my photos/a cat.png", "a cat.png"),
        ("onnx:/data/net.onnx", "onnx:net.onnx"),
        (r"C:\Users\ann\cat.png", "cat.png"),
        ("onnx:C:/nets/net.onnx", "onnx:net.onnx"),
        ("hf:facebook/dinov2-base", "hf:facebook/dinov2-base"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("1/K of the repeats", "1/K of the repeats"),
    ],
)
def test_a_text_that_is_a_path_is_shortened_to_the_file_name(text, shown):
    assert file_name(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/cat.png: is damaged", "cat.png: is damaged"),
        ("cannot read '/home/ann/cat.png' (or /data/x/y)", "cannot read 'cat.png' (or y)"),
        (r"D:\pictures\new\cat.png: is damaged", "cat.png: is damaged"),
        ("see https://example.org/a/b and hf:facebook/dinov2", "see https://example.org/a/b and hf:facebook/dinov2"),
        ("depth / breadth, 3/4 of them", "depth / breadth, 3/4 of them"),
    ],
)
def test_folders_of_paths_within_a_sentence_are_left_out(text, shown):
    assert without_folders(text) == shown


def test_known_paths_may_have_spaces_and_may_be_relative():
    spaced, relative = Path("/home/ann lee/my photos/a cat.png"), Path("pictures/dog.png")
    text = f"{spaced}: cut short; {relative} and {relative.absolute()} too; data pictures stay"
    assert (
        without_folders(text, spaced, relative) == "a cat.png: cut short; dog.png and dog.png too; data pictures stay"
    )


def test_plain_data_is_searched_to_the_bottom():
    about = {"asked": {"dataset": "/data/voc", "against": ["/a b/c"]}, "images": {"/data/voc": 3, "/old/voc": 4}}
    assert without_paths(about) == {"asked": {"dataset": "voc", "against": ["c"]}, "images": {"voc": 3, "voc (2)": 4}}
    assert set(paths_in(about)) == {Path("/data/voc"), Path("/a b/c"), Path("/old/voc")}


def test_images_of_one_file_name_are_told_apart_by_their_folders():
    paths = [Path("/x/a/cat.png"), Path("/x/b/cat.png"), Path("/x/b/dog.png")]
    assert image_names(paths) == ["a/cat.png", "b/cat.png", "dog.png"]
