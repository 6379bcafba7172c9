"""Snakemake, which looks at the jobs of a cluster every second:  python tests/slurm/eager.py ARGUMENTS

The plugin for SLURM waits ten seconds longer after each look that finds no job ended, at most three minutes. That suits jobs of hours;
tests of jobs of seconds would do little but wait. Nothing else is changed, and jobs start a Snakemake as it is.
"""

import asyncio
import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(self):
    await asyncio.sleep(1)


RemoteExecutor.sleep = sleep
main(sys.argv[1:])
