"""Models of images and texts, tiny and untrained, with tokenisers whose vocabulary is made on the spot."""

import json
import string

import open_clip
import sentencepiece
import torch
import transformers
from tiny_models import CROPPED, SEEN, SMALL, SQUARE

LENGTH = 8
"""Number of tokens to which texts are cut."""
LETTERS = list(string.ascii_lowercase)
TEXTS = ["a red car", "a photo of a cat", "a text that is much longer than the eight tokens to which all texts are cut"]
PADDING = {"siglip": "max_length", "align": "max_length"}
"""How the processors of these models pad texts; all others pad to the longest."""


def clip_tokenizer(folder):
    """Return a tokeniser of letters, and of the merges that make the words red and car."""
    words = ["re", "red</w>", "ca", "car</w>"]
    names = ["<|startoftext|>", "<|endoftext|>", *LETTERS, *(f"{letter}</w>" for letter in LETTERS), *words]
    merges = [("r", "e"), ("re", "d</w>"), ("c", "a"), ("ca", "r</w>")]
    vocabulary = {name: number for number, name in enumerate(names)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=LENGTH)


def bert_tokenizer(folder):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    vocabulary = {name: number for number, name in enumerate(names)}
    return transformers.BertTokenizer(vocab=vocabulary, model_max_length=LENGTH)


def roberta_tokenizer(folder):
    names = ["<s>", "<pad>", "</s>", "<unk>", "▁", *LETTERS, *(f"▁{letter}" for letter in LETTERS)]
    vocabulary = [(name, -float(number)) for number, name in enumerate(names)]
    return transformers.XLMRobertaTokenizer(vocab=vocabulary, model_max_length=LENGTH)


def siglip_tokenizer(folder):
    """Return a tokeniser whose sentencepiece model is trained on a few texts."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 5),
        model_prefix=str(folder / "spiece"),
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return transformers.SiglipTokenizer(vocab_file=str(folder / "spiece.model"), model_max_length=LENGTH)


def two_towers():
    """Return for each type of model a function that makes it, its image processor and its tokeniser."""
    t = transformers
    text = SMALL | {"vocab_size": 64, "max_position_embeddings": LENGTH}
    bpe = text | {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    roberta = text | {"max_position_embeddings": LENGTH + 2, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    vision = SMALL | SEEN
    clip, squared = t.CLIPImageProcessor(**CROPPED), t.SiglipImageProcessor(**SQUARE)
    both = {"projection_dim": 16}

    def maker(model, config, text, vision=vision, **options):
        return lambda: model(config(text_config=text, vision_config=vision, **options))

    stages = {"image_size": 32, "width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 24}
    return {
        "clip": (maker(t.CLIPModel, t.CLIPConfig, bpe, **both), clip, clip_tokenizer),
        "siglip": (maker(t.SiglipModel, t.SiglipConfig, text | {"projection_size": 32}), squared, siglip_tokenizer),
        "chinese_clip": (maker(t.ChineseCLIPModel, t.ChineseCLIPConfig, text, **both), clip, bert_tokenizer),
        "altclip": (
            maker(t.AltCLIPModel, t.AltCLIPConfig, roberta | {"project_dim": 32}, **both),
            clip,
            roberta_tokenizer,
        ),
        "align": (
            maker(t.AlignModel, t.AlignConfig, text, stages, projection_dim=80),
            t.ViTImageProcessor(**SQUARE),
            bert_tokenizer,
        ),
        "metaclip_2": (
            maker(t.MetaClip2Model, t.MetaClip2Config, bpe | {"eos_token_id": 2}, **both),
            clip,
            roberta_tokenizer,
        ),
    }


def saved(kind, folder):
    """Save a model of that type with its image processor and its tokeniser, and return the folder."""
    make, processor, make_tokenizer = two_towers()[kind]
    folder.mkdir()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = make()
    for tensor in network.parameters():  # so that no position embedding stays zero
        tensor.data += 0.02 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(2))
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    make_tokenizer(folder).save_pretrained(folder)
    return folder


VISION = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8}
TEXT = {"context_length": LENGTH, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
OPEN_CLIP = {
    "tiny-clip": {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TEXT},
    "tiny-resnet-clip": {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 16},
        "text_cfg": TEXT,
    },
    "tiny-custom-clip": {"embed_dim": 16, "custom_text": True, "vision_cfg": VISION, "text_cfg": TEXT},
    "tiny-coca": {
        "embed_dim": 16,
        "custom_text": True,
        "vision_cfg": VISION | {"output_tokens": True},
        "text_cfg": TEXT | {"embed_cls": True, "output_tokens": True},
        "multimodal_cfg": {"width": 32, "context_length": LENGTH, "vocab_size": 49408, "layers": 1, "heads": 2},
    },
}
"""Configurations of open_clip, which has the vocabulary of its tokeniser built in."""


def register(folder):
    """Make open_clip know these models by their names."""
    for name, config in OPEN_CLIP.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
