"""Read the fenced blocks of README and docs, and cut the budget of what they run."""

import ast
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from repeat_xai.errors import ConfigurationError
from repeat_xai.methods.method_names import MethodSettings

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs/tutorial.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {TUTORIAL})]
"""Pages whose blocks are run at a small budget. The tutorial is run at its own budget, by a test of its own."""
SHELL_LANGUAGES = {"", "sh", "bash", "console"}
TEXT_LANGUAGES = {"text", "html", "json"}
"""Languages of blocks that are not run."""
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\S*)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """The text between two fences."""

    page: Path
    line: int
    language: str
    rest: str
    """The words behind the language, such as a title."""
    text: str

    @property
    def place(self) -> str:
        """The page and the line of the block, for error messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order; a fence that is not closed is an error."""
    content = page.read_text(encoding="utf-8")
    result = []
    for fence in FENCE.finditer(content):
        width = len(fence["indent"])
        text = "".join(line[width:] for line in fence["text"].splitlines(keepends=True))
        line = content[: fence.start()].count("\n") + 1
        result.append(Block(page, line, fence["language"], fence["rest"].strip(), text))
    assert content.count("```") == 2 * len(result), f"{page}: a fence is not closed, or not read"
    return result


def commands(text: str) -> list[list[str]]:
    """Return the lines of a shell as words; continued lines are joined, prompts and comments are left out.

    >>> commands("$ repeat-xai list methods  # all of them")
    [['repeat-xai', 'list', 'methods']]
    """
    lines = re.sub(r"\\\n", " ", text).splitlines()
    words = [shlex.split(re.sub(r"^\w*\$ +", "", line), comments=True) for line in lines]
    return [line for line in words if line]


def without_ellipsis(words: list[str]) -> list[str]:
    """Return a command without its ellipses, and without an option whose value is an ellipsis.

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


def is_quoted_from_source(block: Block) -> bool:
    """Return whether the lines of a block stand in the file that its title names, one after the other."""
    (name,) = re.fullmatch('title="(.+)"', block.rest).groups()
    source = [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    lines = [line.strip() for line in block.text.strip().splitlines()]
    return any(source[start : start + len(lines)] == lines for start in range(len(source)))


MAX_VALUES = {
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
"""The budget of a snippet: the largest number that a call may be given, which it is given if the snippet gives none."""
DEFAULT_VALUES = {"load_encoder": {"size": 32}}
"""What a call is given unless the snippet says otherwise: an encoder sees 32×32 pixels."""


def with_small_budget(source: str, name: str) -> ast.Module:
    """Return the syntax tree of a snippet whose budget is cut.

    >>> ast.unparse(with_small_budget("rx.Repeat(repeats=10)", "doctest"))
    'rx.Repeat(repeats=2, budget=256, base=rx.Relax(masks=12))'
    >>> ast.unparse(with_small_budget("rx.explain(encoder, 'cat.jpg')", "doctest"))
    "rx.explain(encoder, 'cat.jpg', method=rx.Repeat(repeats=2, budget=256, base=rx.Relax(masks=12)))"
    """
    return ast.fix_missing_locations(_BudgetCutter().visit(ast.parse(source, name)))


class _BudgetCutter(ast.NodeTransformer):
    """Adds or lowers the keyword arguments of `MAX_VALUES` and `DEFAULT_VALUES`, and cuts the budget of commands."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {keyword.arg: keyword for keyword in node.keywords}
        for option, limit in MAX_VALUES.get(name, {}).items():
            if option not in given:
                node.keywords.append(ast.keyword(option, ast.Constant(limit)))
            elif isinstance(value := given[option].value, ast.Constant) and isinstance(value.value, int):
                given[option].value = ast.Constant(min(value.value, limit))
        if isinstance(node.func, ast.Attribute):
            if name == "Repeat" and "base" not in given:
                node.keywords.append(ast.keyword("base", self._call(node.func, "Relax")))
            if name in ("explain", "explain_many") and "method" not in given:
                node.keywords.append(ast.keyword("method", self._call(node.func, "Repeat")))
        if name == "main" and node.args:
            words = eval(compile(ast.Expression(node.args[0]), "arguments of main", "eval"))
            node.args[0] = ast.List([ast.Constant(word) for word in cheap_command(words)], ast.Load())
        for option, value in DEFAULT_VALUES.get(name, {}).items():
            if option not in given and "preprocessing" not in given:
                node.keywords.append(ast.keyword(option, ast.Constant(value)))
        return node

    def _call(self, beside: ast.Attribute, name: str) -> ast.Call:
        """Return a call of another name of the same module, whose budget is cut as well."""
        return self.visit_Call(ast.Call(ast.Attribute(beside.value, name, ast.Load()), [], []))


SMALL_REPEAT = {"--masks": 9, "--repeats": 2}
"""Nine masks are too few for the fast estimator, so the repeats are exact, at 19 encoder calls."""
BUDGETS = {
    "explain": SMALL_REPEAT | {"--passes": 2, "--size": 32},
    "screen": SMALL_REPEAT | {"--size": 32},
    "evaluate": SMALL_REPEAT | {"--passes": 2, "--images": 2, "--draws": 2},
    "reproduce": SMALL_REPEAT | {"--passes": 2, "--images": 2, "--draws": 2, "--samples": 24},
}
"""The budget of a command: options that replace those of the page."""
METHOD_OPTIONS = {"kernel_shap": ("--samples", 24), "integrated_gradients": ("--steps", 4)}
"""Options of `explain` that only these methods have."""
TINY_ENCODER = "timm:test_resnet=random"
"""The encoder that `evaluate` and `reproduce` judge methods with."""


def cheap_command(words: list[str]) -> list[str]:
    """Return a command with a small budget: options are appended, and the last of two is used.

    Methods are judged with a tiny encoder, and a single table stands for `all` tables of the paper.

    >>> cheap_command(["screen", "photos/", "--masks", "250"])
    ['screen', 'photos/', '--masks', '250', '--masks', '9', '--repeats', '2', '--size', '32']
    >>> cheap_command(["explain", "cat.jpg", "--method", "relax"])[4:]
    ['--masks', '9', '--size', '32']
    """
    command = words[0]
    options = dict(BUDGETS.get(command, {}))
    if command == "explain":
        methods = dict(pairwise(words)).get("--method", "repeat").split(",")
        options = {option: value for option, value in options.items() if is_used(option, methods)}
        options |= dict(option for method, option in METHOD_OPTIONS.items() if method in " ".join(words))
    if command in ("evaluate", "reproduce"):
        words = [word for word in words if word not in {"--encoder", *encoders_of(words)}]
        options["--encoder"] = TINY_ENCODER
    if command == "reproduce":
        words = [*("thresholds" if word == "all" else word for word in words if word != "--only-these"), "--only-these"]
    return [*words, *(str(word) for option in options.items() for word in option)]


def is_used(option: str, methods: list[str]) -> bool:
    """Return whether `explain` takes an option together with these methods."""
    try:
        MethodSettings().expect_used(methods, [option.removeprefix("--")])
    except ConfigurationError:
        return False
    return True


def encoders_of(words: list[str]) -> list[str]:
    """Return the encoders that a command names.

    >>> encoders_of(["evaluate", "--encoder", "efficientnet_lite0", "--encoder", "torchvision:alexnet=file"])
    ['efficientnet_lite0', 'torchvision:alexnet=file']
    """
    return [after for option, after in pairwise(words) if option == "--encoder"]
