"""Find the smallest classes that contain a class: its direct parents.

Of all classes that contain it one after the other is taken, small ones first. Whatever contains
that one is no direct parent, so it is cleared. A chain of 100,000 takes one step for each query,
not 100,000. The order only saves time: a parent taken before is cleared, too, if it contains
another.

`s` is a `SupersetTable` and `layout` a `Layout`. Sets of classes are bitmaps: class i is bit
`i & 63` of word `i >> 6`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headgate.implication.order.kernels.cover import COVERED, UNCOVERED, check_cover
from headgate.implication.order.kernels.supersets import find_supersets
from headgate.implication.order.products import Numbers
from headgate.jit import inlined_kernel, kernel, lowest_bit, plain_kernel


class JointContainers(NamedTuple):
    """`classes[offsets[i]:offsets[i + 1]]` contain class i, though no single part of them does.

    Several parts of a union do together, or one of the two is opaque.
    """

    offsets: Numbers
    classes: Numbers


@inlined_kernel
def _fold(layout, bits):
    """Set the bits of the classes of which any part has its bit."""
    for w in range(layout.words, len(bits)):
        bits[layout.class_word[w]] |= bits[w]


@plain_kernel
def find_containing(s, layout, also, i, out, bits, begin, among):
    """Write the classes of `among` that contain class i and are not it, from word `begin` on.

    All its parts must be inside parts of theirs. `bits` has room for all parts.
    """
    # The AND over the parts of the class: each must be inside a part of the same other class.
    for w in range(begin, len(out)):
        out[w] = among[w]
    for at in range(layout.offsets[i], layout.offsets[i + 1]):
        find_supersets(s, layout.parts[at], 0, bits, begin, out, layout.class_word)
        for w in range(layout.words, len(bits)):
            bits[w] &= layout.real[w]
        _fold(layout, bits)
        for w in range(begin, len(out)):
            out[w] &= bits[w]
    # What contains it otherwise was found before.
    for at in range(also.offsets[i], also.offsets[i + 1]):
        place = also.classes[at]
        if place >> 6 >= begin:
            out[place >> 6] |= among[place >> 6] & (np.uint64(1) << np.uint64(place & 63))
    if i >> 6 >= begin:
        out[i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))


@inlined_kernel
def _with_room(array, count):
    """Return an array with room for one more: itself, or one twice as long if it is full."""
    return np.concatenate((array, np.empty_like(array))) if count == len(array) else array


@kernel
def find_direct_parents(s, layout, also, start, stop, max_pairs):
    """Return the classes from `start` up to before `stop` with each of their direct parents.

    These are two arrays; then for each class the first that is the same, itself if there is none
    (only such have parents); then the first class that it did not reach, as it ends when it has
    more than `max_pairs`.
    """
    words = layout.words
    everything = layout.real[:words]
    bits = np.zeros(len(layout.class_word), np.uint64)
    # Bitmaps of classes: candidates that are left, parents so far, and scratch.
    left, out = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    direct = np.zeros(words, np.uint64)
    children, parents = np.empty(1024, np.int32), np.empty(1024, np.int32)
    same = np.arange(start, stop)
    count = 0
    i = start
    while i < stop and count <= max_pairs:
        if layout.offsets[i] == layout.offsets[i + 1]:
            i += 1
            continue
        begin = layout.begin[i]
        own = np.uint64(1) << np.uint64(i & 63)
        find_containing(s, layout, also, i, left, bits, begin, everything)
        direct[begin:] = 0
        # Take the smallest candidate that is left, until none is.
        w = begin
        while w < words and same[i - start] == i:
            if left[w] == np.uint64(0):
                w += 1
                continue
            other = 64 * w + lowest_bit(left[w])
            # Its lowest bit alone, which is then cleared.
            bit = left[w] & (~left[w] + np.uint64(1))
            left[w] &= ~bit
            # What contains the candidate, among the other candidates and the parents so far; and,
            # as unions may be the same class written differently, the class itself.
            # Words before this hold nothing that contains both the class and the candidate.
            from_here = max(begin, layout.begin[other])
            for v in range(from_here, words):
                left[v] |= direct[v]
            is_union = w >= layout.unions or i >> 6 >= layout.unions
            if is_union:
                left[i >> 6] |= own
            find_containing(s, layout, also, other, out, bits, from_here, left)
            if is_union:
                left[i >> 6] &= ~own
            for v in range(from_here, words):
                left[v] &= ~direct[v]
            if is_union and i >> 6 >= from_here and out[i >> 6] & own != np.uint64(0):
                # Each contains the other: they are one class, named after the first of them.
                same[i - start] = min(i, other)
                continue
            # It is a parent; all that contain it are not.
            direct[w] |= bit
            for v in range(from_here, words):
                left[v] &= ~out[v]
                direct[v] &= ~out[v]
        # Write the pairs of a class that is the first of its kind.
        if same[i - start] == i:
            for w in range(begin, words):
                while direct[w]:
                    children, parents = _with_room(children, count), _with_room(parents, count)
                    children[count], parents[count] = i, 64 * w + lowest_bit(direct[w])
                    direct[w] &= direct[w] - np.uint64(1)
                    count += 1
        i += 1
    return children[:count], parents[:count], same, i


@plain_kernel
def _check_parts(s, layout, i, union):
    """Check whether the parts of a union cover all parts of class i."""
    # The first part that is not covered, or undecided, decides.
    begin, end = layout.offsets[union], layout.offsets[union + 1]
    answer = COVERED
    for at in range(layout.offsets[i], layout.offsets[i + 1]):
        answer = check_cover(s.hulls, layout.parts[at], s.free[0], layout.parts, begin, end)
        if answer != COVERED:
            break
    return answer


@kernel
def find_joint_containers(s, layout, also, corners, start, stop, max_pairs):
    """Return pairs of a class and a union that contains it by several of its parts together.

    All corners of the class's parts are in the union; the third array says whether its parts cover
    them, or that it is undecided. It ends when it has more than `max_pairs`; the last answer is the
    first class that it did not reach.
    """
    words = layout.words
    everything = layout.real[:words]
    bits = np.zeros(len(layout.class_word), np.uint64)
    left, out = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    # The pairs so far; the arrays double when they are full.
    inner, outer = np.empty(1024, np.int32), np.empty(1024, np.int32)
    answers = np.empty(1024, np.int32)
    count = 0
    i = start
    while i < stop and count <= max_pairs:
        first, last = layout.offsets[i], layout.offsets[i + 1]
        # Candidates: unions that do not contain the class by single parts.
        find_containing(s, layout, also, i, out, bits, layout.unions, everything)
        for w in range(layout.unions, words):
            left[w] = everything[w] & ~out[w]
        if i >> 6 >= layout.unions:
            left[i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))
        # Corners rule out nearly all of them, and take only bitmaps.
        for at in range(first, last):
            for number in range(len(s.free) + 1):
                # All trees but tree 0, then the first two of them again with the other corner.
                tree = 1 + number % (len(s.free) - 1)
                corner = corners[at, (tree + (number >= len(s.free) - 1)) & 1]
                if not left[layout.unions :].any():
                    break
                find_supersets(s, corner, tree, bits, layout.unions, left, layout.class_word)
                for w in range(words, len(bits)):
                    bits[w] &= layout.real[w]
                _fold(layout, bits)
                for w in range(layout.unions, words):
                    left[w] &= bits[w]
        # The few that are left are decided exactly.
        for w in range(layout.unions, words):
            while left[w]:
                union = 64 * w + lowest_bit(left[w])
                left[w] &= left[w] - np.uint64(1)
                answer = _check_parts(s, layout, i, union)
                if answer == UNCOVERED:
                    continue
                inner, outer = _with_room(inner, count), _with_room(outer, count)
                answers = _with_room(answers, count)
                inner[count], outer[count], answers[count] = i, union, answer
                count += 1
        i += 1
    return inner[:count], outer[:count], answers[:count], i
