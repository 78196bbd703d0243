"""The processes that a test has started, as Linux lists them in /proc."""

import time
from contextlib import suppress
from pathlib import Path


def children(pid):
    """Return the ids of all processes that a process has started, and of those that they have started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    descendants, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        descendants |= new
    return descendants


def ended(pids, seconds=20.0):
    """Wait until all these processes have ended; return whether they have within this time."""
    until = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


def alive(pid):
    """Return whether a process is running, and not only waiting for its parent to read its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def listening(pids):
    """Return the addresses on which these processes wait for connections, as the kernel writes them."""
    sockets = set()
    for pid in pids:
        with suppress(OSError):
            sockets |= {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.add(fields[1].partition(":")[0])
    return addresses
