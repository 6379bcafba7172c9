"""How much memory a calculation may use here."""

import os
import resource
from pathlib import Path

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_bytes():
    """Memory of this machine, or less where a limit on this process or its group says so."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    for path in map(Path, CGROUP_LIMITS):
        text = path.read_text().strip() if path.is_file() else ""
        if text.isdigit():
            limits.append(int(text))
    return min(limits)
