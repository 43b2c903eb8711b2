"""A network of nodes; streams that flow through it; where a new query taps in, and what widens."""

from headgate.sharing.advice import Advice, advise
from headgate.sharing.improve import improved
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.network_file import Described, read_network
from headgate.sharing.plan import Plan, plan_of
from headgate.sharing.planner import Planner, Published
from headgate.sharing.rearrange import rearranged
from headgate.sharing.sample_file import read_sample
from headgate.sharing.sampled import Sampled
from headgate.sharing.walk import walk

__all__ = [
    "Advice",
    "Described",
    "Link",
    "Network",
    "Node",
    "Plan",
    "Planner",
    "Published",
    "Sampled",
    "advise",
    "improved",
    "plan_of",
    "read_network",
    "read_sample",
    "rearranged",
    "walk",
]
