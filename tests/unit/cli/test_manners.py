"""Tests of what people expect of any command: quick help, completion, versions, streams, colours and interrupts."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from command import SMALL, run_here
from serving import until

from repeat_xai import __version__
from repeat_xai.cli import ending_as_by_ctrl_c, interrupt, main
from repeat_xai.cli.commands import COMMANDS
from repeat_xai.cli.explain_progress import interruptible
from repeat_xai.cli.help_examples import EXAMPLES
from repeat_xai.experiments.executors.ray_cluster import interrupts_deferred

COMMAND = str(Path(sys.executable).parent / "repeat-xai")
QUICK = ["--estimator", "exact", "--masks", "6", "--repeats", "2", *SMALL]
LOADS = """
import sys
from repeat_xai.cli import ending_as_by_ctrl_c, interrupt, main
try:
    main()
finally:
    sys.stderr.write(" ".join({"torch", "numpy", "timm", "matplotlib"} & set(sys.modules)))
"""


def python(code, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"COLUMNS": "80"} | environment,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_nothing_heavy(arguments):
    status, output, loaded = python(LOADS, *arguments)
    assert loaded == ""
    assert status == 0
    assert (output.strip() == f"repeat-xai {__version__}") == (arguments == ["--version"])


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "repeat_xai", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"repeat-xai {__version__}\n"


def test_commands_are_completed_without_loading_anything_heavy():
    variables = {"_REPEAT_XAI_COMPLETE": "complete_bash", "COMP_WORDS": "repeat-xai e", "COMP_CWORD": "1"}
    assert python(LOADS, **variables)[1:] == ("explain\nevaluate\n", "")


@pytest.mark.slow
def test_values_of_options_are_completed():
    variables = {
        "_REPEAT_XAI_COMPLETE": "complete_bash",
        "COMP_WORDS": "repeat-xai explain --votes b",
        "COMP_CWORD": "3",
    }
    assert python("from repeat_xai.cli import main; main()", **variables)[1] == "binary\n"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown(shell):
    status, output, _ = python(
        "from repeat_xai.cli import main; main()",
        "--show-completion",
        shell,
        _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
    )
    assert status == 0
    assert "_REPEAT_XAI_COMPLETE" in output


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_ends_with_examples_and_the_exit_status(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "160")  # so that each example is in one line
    status, output = run_here(monkeypatch, capsys, name, "--help")
    assert status == 0
    _, first = re.split(r"^ *Examples: *$", output.out, flags=re.MULTILINE)
    lines = [line.strip() for line in first.splitlines() if line.strip()]
    assert tuple(lines[: len(EXAMPLES[name])]) == EXAMPLES[name]
    assert 2 <= len(EXAMPLES[name]) <= 3
    assert " ".join(lines[-2:]).endswith("2, wrong usage; 130, interrupted.")


def test_wrong_usage_is_2_and_arguments_may_be_given_in_python(capsys):
    for arguments in (["--nonsense"], ["nonsense"], ["explain", "--nonsense"], ["list", "nonsense"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert "onsense" in capsys.readouterr().err


@pytest.mark.slow
def test_a_full_disk_behind_standard_output_is_one_line(photo, tmp_path):
    arguments = [COMMAND, "explain", photo, "--out", tmp_path / "out", *QUICK]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    output = "repeat-xai: standard output cannot be written (No space left on device)\n"
    assert (done.returncode, done.stderr) == (1, output)
    assert (tmp_path / "out" / "cat.json").exists()


def run_on_terminal(arguments, **environment):
    """Run the command with standard error on a terminal; return its status, its output, and the terminal's text."""
    ours, theirs = pty.openpty()
    environment = (
        {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        | {"TERM": "xterm-256color"}
        | environment
    )
    with subprocess.Popen(
        [COMMAND, *arguments], stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment
    ) as child:
        os.close(theirs)
        terminal = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            terminal += part
        out = child.stdout.read()
    os.close(ours)
    return child.returncode, out, terminal.decode()


COLOUR = re.compile(r"\x1b\[[0-9;]*(3|4|9)[0-9]")


@pytest.mark.slow
@pytest.mark.parametrize("without", [False, True])
def test_progress_goes_to_the_terminal_results_to_standard_output_and_colours_can_be_left_out(photo, tmp_path, without):
    arguments = ["explain", str(photo), "--out", str(tmp_path / "out"), *QUICK]
    status, out, terminal = run_on_terminal(arguments, **({"NO_COLOR": "1"} if without else {}))
    assert status == 0
    assert out.splitlines()[0].startswith(f"{photo}: {tmp_path / 'out' / 'cat.png'}")
    assert "\x1b" not in out
    assert "calls" in terminal
    assert bool(COLOUR.search(terminal)) != without


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.3, 0.8, 1.8])
def test_an_interrupt_while_loading_is_a_line_and_130(photo, tmp_path, after):
    child = subprocess.Popen(
        [COMMAND, "explain", str(photo), "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert until(lambda: "torch" in Path(f"/proc/{child.pid}/maps").read_text())
    time.sleep(after)
    child.send_signal(signal.SIGINT)
    _, output = child.communicate(timeout=60)
    assert child.returncode == 130
    assert re.fullmatch(r"repeat-xai: interrupted.*\n", output)


def test_an_interrupt_while_loading_ends_the_process_without_an_exception():
    code = (
        "import os, signal, repeat_xai.cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n    with repeat_xai.cli.leaving_at_once():\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "except BaseException:\n    print('passed through')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "repeat-xai: interrupted\n")


@pytest.fixture
def signals():
    """Handle SIGTERM as in a process that has just begun, and as before afterwards."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_sigterm_interrupts_the_command_and_is_then_ignored(signals, capsys):
    with ending_as_by_ctrl_c():
        with pytest.raises(typer.Exit) as ended, interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "repeat-xai: interrupted; run the same command again to go on\n"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_handlers_of_signals_are_restored_after_a_command(signals):
    with ending_as_by_ctrl_c():
        assert signal.getsignal(signal.SIGTERM) is interrupt
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_sigterm_that_exists_already_is_kept(signals):
    received = []
    signal.signal(signal.SIGTERM, lambda *_: received.append("handled"))
    with ending_as_by_ctrl_c():
        os.kill(os.getpid(), signal.SIGTERM)
    assert received == ["handled"]


def test_an_interrupt_is_deferred_while_ray_starts_but_a_second_one_is_not(signals):
    signal.signal(signal.SIGTERM, interrupt)
    reached = []
    with pytest.raises(KeyboardInterrupt), interrupts_deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        reached.append("the end")
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    signal.signal(signal.SIGTERM, interrupt)
    with pytest.raises(KeyboardInterrupt), interrupts_deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        reached.append("not here")
    assert reached == ["the end"]


def test_wrong_usage_is_one_line_that_names_the_help(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "explain", "cat.png", "--out", "out", "--masks", "0")
    assert (status, output.out) == (2, "")
    assert re.fullmatch(r"repeat-xai: Invalid value for '--masks': .*; see repeat-xai explain --help\n", output.err)


def test_an_unknown_kind_of_names_is_refused_with_the_known_kinds(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "list", "nonsense")
    assert (status, output.out) == (2, "")
    assert re.fullmatch(r"repeat-xai: .*'nonsense'.*'encoders'.*'executors'; see repeat-xai list --help\n", output.err)
    assert "Value error" not in output.err
