"""Where the peers of a network are drawn: as far from each other as there are links between them.

Stress majorization, after Gansner, Koren and North, "Graph Drawing by Stress Majorization".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from headgate.sharing.network import Network

Numbers = npt.NDArray[np.float64]

THIN_LINK_LENGTH = 0.6  # of the length of a link: how far a thin peer is from its super-peer
MAX_SWEEPS = 300  # that many peers have time for; of more, fewer
MIN_SWEEPS = 30
MIN_STRESS_DECREASE = 1e-5  # of the stress, by which a sweep must be better
MAX_RESTARTED_PEERS = 150  # peers, for which there is time for several beginnings
RESTART_NOISE = (0.3, 0.6, 1.0, 1.0, 1.5, 1.5, 2.0, 2.0, 3.0, 3.0)
CROWDED_DISTANCE = 0.4  # of the length of a link: peers that are hard to tell apart
CROWDED_WEIGHT = 3  # crossings that are as bad as two such peers


def place_peers(network: Network) -> Mapping[str, tuple[float, float]]:
    """For each peer its place, in lengths of a link; the same for the same network.

    Of several beginnings, the one after which fewest links cross and peers stand apart.
    """
    names = list(network.nodes)
    if len(names) == 1:
        return {names[0]: (0.0, 0.0)}
    number = {name: at for at, name in enumerate(names)}
    links = np.array([[number[end] for end in link.ends] for link in network.links])
    wanted = _compute_distances(network, names)
    random = np.random.default_rng(1)
    starts = [_scale_classically(wanted, random)]
    if len(names) <= MAX_RESTARTED_PEERS:
        starts += [starts[0] + random.normal(0, noise, starts[0].shape) for noise in RESTART_NOISE]
    ended = [_majorize_stress(start, wanted) for start in starts]
    found = min(
        ended, key=lambda one: _count_crossings(one, links) + CROWDED_WEIGHT * _count_crowded(one)
    )
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, found, strict=True)}


def _compute_distances(network: Network, names: list[str]) -> Numbers:
    """Links between each two peers, those of thin peers counted as shorter."""
    number = {name: at for at, name in enumerate(names)}
    near = [[number[other] for other, _ in network.neighbours[name]] for name in names]
    hops = np.zeros((len(names), len(names)))
    for start in range(len(names)):
        reached, ahead = {start: 0}, deque([start])
        while ahead:
            at = ahead.popleft()
            for other in near[at]:
                if other not in reached:
                    reached[other] = reached[at] + 1
                    ahead.append(other)
        hops[start, list(reached)] = list(reached.values())
    thin = np.array([network.nodes[name].is_thin for name in names], np.float64)
    shorter = (1 - THIN_LINK_LENGTH) * (thin[:, None] + thin[None, :])
    np.fill_diagonal(shorter, 0.0)
    return hops - shorter


def _scale_classically(wanted: Numbers, random: np.random.Generator) -> Numbers:
    """Classical multidimensional scaling: where to begin. The longer side lies flat."""
    size = len(wanted)
    centre = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-centre @ (wanted**2) @ centre / 2)
    found: Numbers = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    signs = np.sign(found[np.abs(found).argmax(axis=0), [0, 1]])
    jitter = random.normal(0, 0.01, found.shape)
    return found * np.where(signs == 0, 1.0, signs) + jitter


def _majorize_stress(found: Numbers, wanted: Numbers) -> Numbers:
    size = len(wanted)
    weights = np.where(np.eye(size, dtype=bool), 0.0, 1 / np.maximum(wanted, THIN_LINK_LENGTH) ** 2)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    before = np.inf
    for _ in range(
        max(
            MIN_SWEEPS,
            MAX_SWEEPS
            * MAX_RESTARTED_PEERS
            * MAX_RESTARTED_PEERS
            // max(size, MAX_RESTARTED_PEERS) ** 2,
        )
    ):
        apart = _measure_distances(found)
        stress = float((weights * (apart - wanted) ** 2).sum())
        if stress >= before * (1 - MIN_STRESS_DECREASE):
            break
        before = stress
        pull = weights * wanted / np.maximum(apart, 1e-9)
        found = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ found)
    return found


def _measure_distances(found: Numbers) -> Numbers:
    return np.asarray(np.linalg.norm(found[:, None, :] - found[None, :, :], axis=2))


def _count_crossings(found: Numbers, links: npt.NDArray[np.int64]) -> int:
    """Pairs of links, with no peer in common, that cross."""
    start, end = found[links[:, 0]], found[links[:, 1]]
    sides = [_find_sides(start, end, other) for other in (start, end)]
    parted = sides[0] * sides[1] < 0
    ends = links[:, :, None, None] == links.T[None, None, :, :]
    return int((parted & parted.T & ~ends.any(axis=(1, 2))).sum()) // 2


def _find_sides(start: Numbers, end: Numbers, others: Numbers) -> Numbers:
    """On which side of each line each point is, by sign."""
    along, away = end - start, others[None, :, :] - start[:, None, :]
    return np.asarray(along[:, None, 0] * away[:, :, 1] - along[:, None, 1] * away[:, :, 0])


def _count_crowded(found: Numbers) -> int:
    return int((_measure_distances(found) < CROWDED_DISTANCE).sum() - len(found)) // 2
