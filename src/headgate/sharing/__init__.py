"""Queries that share streams: in a network of peers, or among the jobs of one cluster.

A network file is read into a `NetworkFile` (`read_network`), its queries are registered with a
`Planner` (`plan_network`), and what the planner has come to is a `Plan` (`make_plan`): what flows
over which link, where it is filtered, and what each peer gets. One stream has three forms: a *hop*
while it is planned, which changes with every query; a *flow* over one link in a plan, which is
plain values; and a *shared stream* over all links on which nothing is filtered, for people.
"""

from headgate.sharing.advice import Advice, AdvisedStream, advise
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.network_file import NetworkFile, read_network
from headgate.sharing.plan import Plan, make_plan
from headgate.sharing.plan_execution import run_plan
from headgate.sharing.planner import Planner
from headgate.sharing.planning import (
    StrategyCost,
    compare_strategies,
    improve_plan,
    plan_network,
    rearrange_plan,
)
from headgate.sharing.sampled_stream import PublishedStream, SampledStream
from headgate.sharing.samples import read_sample
from headgate.sharing.shared_streams import SharedStream, list_shared_streams

__all__ = [
    "Advice",
    "AdvisedStream",
    "Link",
    "Network",
    "NetworkFile",
    "Node",
    "Plan",
    "Planner",
    "PublishedStream",
    "SampledStream",
    "SharedStream",
    "StrategyCost",
    "advise",
    "compare_strategies",
    "improve_plan",
    "list_shared_streams",
    "make_plan",
    "plan_network",
    "read_network",
    "read_sample",
    "rearrange_plan",
    "run_plan",
]


def __dir__() -> list[str]:
    return list(__all__)
