"""Streams that serve many queries in a network: what they move, and how long planning takes.

| experiment          | what it asks                                                              |
|---------------------|---------------------------------------------------------------------------|
| `sharing-queries`   | how much moves over all links, by the number of queries?                  |
| `sharing-overlap`   | by how much queries overlap?                                              |
| `sharing-interests` | by how many places they are drawn around?                                 |
| `sharing-orders`    | how far does that depend on the order in which queries are registered?    |
| `sharing-optimum`   | how far is it from the least that is possible, in small networks?         |
| `sharing-scale`     | how long does it take to register one query more, or to let one go?       |
"""

from __future__ import annotations

from benchmarks.harness.report import Family
from benchmarks.sharing.orders import DISTANCE, ORDERS
from benchmarks.sharing.scale import SCALE
from benchmarks.sharing.traffic import TRAFFIC

SHARING = Family("Streams shared in a network", (*TRAFFIC, ORDERS, DISTANCE, SCALE))
