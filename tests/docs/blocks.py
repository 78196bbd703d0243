"""The fenced blocks of README and docs, and what each of them asks to be done."""

import ast
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs/tutorial.md"
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {TUTORIAL})]
"""The tutorial is run at its own budget, by a test of its own."""
SHELL = {"", "sh", "bash", "console"}
SHOWN = {"text", "html", "json"}
"""Languages of what is only looked at."""
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\S*)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """What stands between two fences."""

    page: Path
    line: int
    language: str
    rest: str
    """What stands behind the language."""
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Those of a page, in order; a fence that is not closed is refused."""
    content = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(content):
        width = len(fence["indent"])
        text = "".join(line[width:] for line in fence["text"].splitlines(keepends=True))
        found.append(
            Block(page, content[: fence.start()].count("\n") + 1, fence["language"], fence["rest"].strip(), text)
        )
    assert content.count("```") == 2 * len(found), f"{page}: a fence is not closed, or not read"
    return found


def commands(text: str) -> list[list[str]]:
    """Lines of a shell as words: continued lines joined, prompts and comments left out.

    >>> commands("$ repeat-xai list methods  # all of them")
    [['repeat-xai', 'list', 'methods']]
    """
    lines = re.sub(r"\\\n", " ", text).splitlines()
    words = [shlex.split(re.sub(r"^\w*\$ +", "", line), comments=True) for line in lines]
    return [line for line in words if line]


def without_ellipsis(words: list[str]) -> list[str]:
    """An ellipsis stands for more of the same; it is left out, and so is the option it would be the value of.

    >>> without_ellipsis(["evaluate", "--encoder", "efficientnet_lite0", "--encoder", "…", "--seed", "1", "…"])
    ['evaluate', '--encoder', 'efficientnet_lite0', '--seed', '1']
    """
    kept: list[str] = []
    for word in words:
        if word != "…":
            kept.append(word)
        elif kept[-1].startswith("--"):
            kept.pop()
    return kept


def quoted(block: Block) -> bool:
    """Whether the lines of a block stand in the file that its title names, one after the other."""
    (name,) = re.fullmatch('title="(.+)"', block.rest).groups()
    source = [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    lines = [line.strip() for line in block.text.strip().splitlines()]
    return any(source[at : at + len(lines)] == lines for at in range(len(source)))


AT_MOST = {
    "Relax": {"masks": 12},
    "Repeat": {"repeats": 2, "budget": 256},
    "Spread": {"passes": 2},
    "IntegratedGradients": {"steps": 4},
    "GradientShap": {"samples": 4},
    "SmoothGrad": {"samples": 4},
    "KernelShap": {"samples": 24},
    "Lime": {"samples": 24},
    "local_lipschitz": {"draws": 2},
    "max_sensitivity": {"draws": 2},
    "RobustnessScore": {"draws": 2},
    "similarity_range": {"masks": 12},
}
"""A snippet's budget: what is called → a number it is given, or the most it may be where it is given."""
UNLESS_SAID = {"load_encoder": {"size": 32}}
"""What is called → what it is given unless the snippet says otherwise: an encoder sees 32×32 pixels."""


def shrunk(source: str, name: str) -> ast.Module:
    """A snippet with its budget cut.

    >>> ast.unparse(shrunk("rx.Repeat(repeats=10)", "doctest"))
    'rx.Repeat(repeats=2, budget=256, base=rx.Relax(masks=12))'
    """
    return ast.fix_missing_locations(_Shrinking().visit(ast.parse(source, name)))


class _Shrinking(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {keyword.arg: keyword for keyword in node.keywords}
        for option, most in AT_MOST.get(called, {}).items():
            if option not in given:
                node.keywords.append(ast.keyword(option, ast.Constant(most)))
            elif isinstance(value := given[option].value, ast.Constant) and isinstance(value.value, int):
                given[option].value = ast.Constant(min(value.value, most))
        if called == "Repeat" and "base" not in given and isinstance(node.func, ast.Attribute):
            base = ast.Call(ast.Attribute(node.func.value, "Relax", ast.Load()), [], [])
            node.keywords.append(ast.keyword("base", self.visit_Call(base)))
        if called == "main" and node.args:
            words = ast.literal_eval(node.args[0])
            node.args[0] = ast.List([ast.Constant(word) for word in cheap(words)], ast.Load())
        for option, value in UNLESS_SAID.get(called, {}).items():
            if option not in given and "preprocessing" not in given:
                node.keywords.append(ast.keyword(option, ast.Constant(value)))
        return node


FEW = {"--masks": 9, "--repeats": 2}
"""Nine masks are too few for a designed pool, so that they are run exactly, at 19 calls of the encoder."""
BUDGET = {
    "explain": FEW | {"--passes": 2, "--size": 32},
    "screen": FEW | {"--size": 32},
    "evaluate": FEW | {"--passes": 2, "--images": 2, "--draws": 2},
    "reproduce": FEW | {"--passes": 2, "--images": 2, "--draws": 2, "--samples": 24},
}
"""A command's budget: what it is given in place of what is printed."""
OF_SOME = {"kernel_shap": ("--samples", 24), "integrated_gradients": ("--steps", 4)}
"""Of `explain`, options that only these methods have."""
TINY = "timm:test_resnet=random"
"""The encoder that methods are judged with."""


def cheap(words: list[str]) -> list[str]:
    """A command with its budget cut: options are appended, and the last of two is heeded.

    Methods are judged with a tiny encoder, and `all` tables of the paper are one of them.

    >>> cheap(["screen", "photos/", "--masks", "250"])
    ['screen', 'photos/', '--masks', '250', '--masks', '9', '--repeats', '2', '--size', '32']
    """
    command = words[0]
    options = dict(BUDGET.get(command, {}))
    if command == "explain":
        options |= dict(option for method, option in OF_SOME.items() if method in " ".join(words))
    if command in ("evaluate", "reproduce"):
        words = [word for word in words if word not in {"--encoder", *named(words)}]
        options["--encoder"] = TINY
    if command == "reproduce":
        words = [*("thresholds" if word == "all" else word for word in words if word != "--only-these"), "--only-these"]
    return [*words, *(str(word) for option in options.items() for word in option)]


def named(words: list[str]) -> list[str]:
    """The encoders that a command names.

    >>> named(["evaluate", "--encoder", "efficientnet_lite0", "--encoder", "torchvision:alexnet=file"])
    ['efficientnet_lite0', 'torchvision:alexnet=file']
    """
    return [after for option, after in pairwise(words) if option == "--encoder"]
