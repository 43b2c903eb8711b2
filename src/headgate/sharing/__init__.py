"""A network of nodes; streams that flow through it; where a new query taps in, and what widens."""

from headgate.sharing.advice import Advice, advise
from headgate.sharing.improve import improve_plan
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.network_file import NetworkFile, read_network
from headgate.sharing.plan import Plan, make_plan
from headgate.sharing.planner import Planner, PublishedStream
from headgate.sharing.rearrange import rearrange_plan
from headgate.sharing.sample_file import read_sample
from headgate.sharing.sampled import SampledStream
from headgate.sharing.walk import run_plan

__all__ = [
    "Advice",
    "Link",
    "Network",
    "NetworkFile",
    "Node",
    "Plan",
    "Planner",
    "PublishedStream",
    "SampledStream",
    "advise",
    "improve_plan",
    "make_plan",
    "read_network",
    "read_sample",
    "rearrange_plan",
    "run_plan",
]
