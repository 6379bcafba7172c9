"""How much memory a calculation may use here."""

import os
import resource
from pathlib import Path

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_bytes():
    """Memory of this machine, or less where a limit on its group says so, or one on this process that it has partly used."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(max(soft - _address_space(), 0))
    for path in map(Path, CGROUP_LIMITS):
        text = path.read_text().strip() if path.is_file() else ""
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def _address_space():
    """Bytes that this process has of what RLIMIT_AS bounds; 0 where the system doesn't tell."""
    sizes = Path("/proc/self/statm")
    return int(sizes.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if sizes.is_file() else 0
