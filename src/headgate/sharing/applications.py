"""Which application does the work of which nodes, and what it reads for that.

A stream enters the application of the super-peer where it begins. A flow whose ends belong to two
applications crosses: it leaves one and is read by the other.
"""

from __future__ import annotations

from headgate.errors import NetworkError, UsageError, did_you_mean
from headgate.sharing.network import Network
from headgate.sharing.plan import Flow, Origin, Plan


def application_names(network: Network) -> tuple[str, ...]:
    """The names of all applications, in the order of the network; "" where none is named.

    Raises NetworkError where some super-peers have one and others have not; thin peers do no work.
    """
    found = dict.fromkeys(network.nodes[name].application for name in network.super_peers)
    if len(found) > 1 and "" in found:
        without = next(n for n in network.super_peers if not network.nodes[n].application)
        raise NetworkError(
            f"super-peer `{without}` belongs to no application, and others do; "
            "give every super-peer one, or none any",
            about=without,
        )
    return tuple(found)


def resolve_application(network: Network, wanted: str | None) -> str:
    """The application of that name; without a name, the only one there is."""
    known = application_names(network)
    if wanted is None and len(known) == 1:
        return known[0]
    names = ", ".join(known)
    if wanted is None:
        raise UsageError(
            f"the network belongs to the applications {names}; say which of them this is, "
            f'as in application = "{known[0]}"'
        )
    if wanted in known and wanted:
        return wanted
    if known == ("",):
        raise UsageError(f"no application `{wanted}`: the nodes of the network have none")
    raise UsageError(f"no application `{wanted}` in the network; {did_you_mean(wanted, known)}")


def find_entering_streams(plan: Plan, application: str) -> tuple[Origin, ...]:
    """The streams that begin at a node of an application, in the order of their names."""
    nodes = plan.network.nodes
    here = [one for one in plan.origins.values() if nodes[one.entry].application == application]
    return tuple(sorted(here, key=lambda one: one.stream.name.lower()))


def find_receiver(plan: Plan, flow: Flow) -> str | None:
    """The application that a flow crosses to; None where it stays in its own."""
    nodes = plan.network.nodes
    start, end = nodes[flow.start].application, nodes[flow.end].application
    return None if start == end else end
