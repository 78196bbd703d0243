"""Counts of the verdicts of the corpus, printed by category when the tests end."""

import re
from collections import Counter

import pytest
from hostile.verdicts import KINDS

LABEL = "hostile"


@pytest.fixture
def judge(request):
    """Record the verdict of one case, then check it against what the case expects.

    `judge(category, verdict, case)` is for one case; `judge(category, verdict, count=n)` only counts.
    """

    def judge(category, verdict, case=None, *, count=1):
        request.node.user_properties.append((LABEL, [category, verdict.kind, count]))
        if case is not None:
            assert verdict.kind == case.expected, verdict.text
        if case is not None and case.message:
            assert re.search(case.message, verdict.text), verdict.text

    return judge


def pytest_terminal_summary(terminalreporter):
    counts: dict[str, Counter] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == LABEL and getattr(report, "when", "") == "call":
                    category, kind, count = value
                    counts.setdefault(category, Counter())[kind] += count
    if not counts:
        return
    terminalreporter.section("hostile input")
    headings = ("tried", "right", "refused in one line", "tracebacks", "hangs", "half files")
    terminalreporter.write_line("category".ljust(20) + "".join(heading.rjust(21) for heading in headings))
    for category, kinds in sorted(counts.items()):
        numbers = (kinds.total(), *(kinds[kind] for kind in KINDS))
        terminalreporter.write_line(category.ljust(20) + "".join(f"{number:,}".rjust(21) for number in numbers))
