"""Programs that decide whether a condition is TRUE: tests that jump, and stop at the first answer.

A condition is a program over three truth values (`snapshot.arrays.trees`), but only whether it is
TRUE matters. That is decided by tests with two outcomes each: an AND is TRUE if all parts are, and
FALSE if any is; NOT swaps the two; a part is neither if it is NULL. So each test says where to go
on if it holds and if not: at another test, ACCEPT or REJECT. Every atom is tested once at most, in
the order of the condition.

Whether a composite part is NULL needs both of its truth values, and is found out first: it gets a
cell, which is then tested like an atom. Its atoms are written twice, whatever it is nested in.

A test is six numbers: its kind and its column, three that depend on the kind, and where to go on if
it holds, and if not.

    RANGE    the code of the column is from the first to the second
    CODES    it is in a mask of 64 codes from the first on, in two halves
    LIST     an odd number of the bounds from the first to the second in `lists` are not above it
    PATTERN  the pattern slot that is the first matches
    BIT      the truth of the comparison or constant that is the first is the second
    CELL     the cell that is the first is set
    SET      always, and sets the cell that is the first to the second
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked
from headgate.matching.keyed.arrays import FALSE, NULL, TRUE
from headgate.matching.keyed.kernels.rows import MASK_CODES, to_signed
from headgate.snapshot.arrays.atoms import COMPARE, CONSTANT, IS_NULL, MATCHES, WITHIN

RANGE, CODES, LIST, PATTERN, BIT, CELL, SET = range(7)
KIND_BITS = 3
TEST = 6  # numbers in a test
ACCEPT, REJECT = -1, -2
# accepted truth values, as masks: NULL alone, and all but NULL
IS_UNKNOWN, IS_KNOWN = 1 << NULL, 1 << FALSE | 1 << TRUE
NO_CELL = -1


@kernel
def compile_programs(
    queries,
    keyed,
    offsets,
    program,
    in_row,
    kind,
    column,
    starts,
    low,
    high,
    negated,
    slot,
    greatest,
):
    """Return where each program begins, all tests, all lists, and the most cells of a program.

    Of a query that is `keyed`, conditions that are in its rows hold already where it is met, and
    are left out.
    """
    longest = 0
    for q in queries:
        longest = max(longest, offsets[q + 1] - offsets[q])
    # of one program, by its entries: where the subtree that ends there begins, the entry whose part
    # it is, the end of the next part, its cell; the truth value that is tested, and where to go on
    tree = np.empty((4, longest), np.int64)
    goals = np.empty((3, longest), np.int64)
    entered = np.empty(longest, np.int64)  # by first entry of a subtree: where its tests begin
    entry = np.empty(len(queries), np.int32)
    tests, used = np.empty(64 * TEST, np.int32), 0
    lists, listed = np.empty(64, np.int32), 0
    list_at = np.full(len(kind), -1, np.int64)  # by atom: where its list is, once it was written
    most_cells = 0
    for i in range(len(queries)):
        q = queries[i]
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        # an atom takes two tests, twice if it is under a cell, and a cell three more
        if used + 8 * TEST * (size + 1) > len(tests):
            more = np.empty(2 * len(tests) + 8 * TEST * (size + 1), np.int32)
            more[:used] = tests[:used]
            tests = more
        room = 0
        for k in range(begin, begin + size):
            if program[k] >= 0:
                room += 2 * (starts[program[k] + 1] - starts[program[k]])
        if listed + room > len(lists):
            more = np.empty(2 * len(lists) + room, np.int32)
            more[:listed] = lists[:listed]
            lists = more
        cells = _link(program, begin, size, tree)
        most_cells = max(most_cells, cells)
        # backwards, since a test needs to know where to go on
        at, last = np.int64(REJECT), size - 1
        for unit in range(cells, -1, -1):
            if unit == cells:
                at, used, listed = _write_part(
                    last,
                    TRUE,
                    ACCEPT,
                    REJECT,
                    begin,
                    keyed[i],
                    program,
                    in_row,
                    tree,
                    goals,
                    entered,
                    kind,
                    column,
                    starts,
                    low,
                    high,
                    negated,
                    slot,
                    greatest,
                    tests,
                    used,
                    lists,
                    listed,
                    list_at,
                )
                continue
            # the part of this cell: neither TRUE nor FALSE
            node = size - 1
            while tree[3, node] != unit:
                node -= 1
            used = _emit(SET, 0, unit, 0, 0, at, at, tests, used)
            no = used // TEST - 1
            used = _emit(SET, 0, unit, 1, 0, at, at, tests, used)
            yes = used // TEST - 1
            if program[begin + node] == -8 - IS_KNOWN:
                yes, no = no, yes
            for truth in (FALSE, TRUE):
                yes, used, listed = _write_part(
                    node - 1,
                    truth,
                    no,
                    yes,
                    begin,
                    False,
                    program,
                    in_row,
                    tree,
                    goals,
                    entered,
                    kind,
                    column,
                    starts,
                    low,
                    high,
                    negated,
                    slot,
                    greatest,
                    tests,
                    used,
                    lists,
                    listed,
                    list_at,
                )
            at = yes
        if at < 0:
            # known without a test; an entry in a row must still say that there is a program
            used = _emit(SET, 0, 0, 0, 0, at, at, tests, used)
            at = used // TEST - 1
        entry[i] = at
    return entry, tests[:used].copy(), lists[:listed].copy(), most_cells


@kernel
def _link(program, begin, size, tree):
    """Find the parts of each entry; give cells to those that ask whether a composite is NULL."""
    first, parent, sibling, cell = tree
    cells = 0
    for i in range(size):
        entry = program[begin + i]
        parts = 0 if entry >= 0 else (-16 - entry) // 2 if entry <= -16 else 1
        first[i], cell[i], parent[i], sibling[i] = i, NO_CELL, -1, -1
        behind = -1  # the end of the part behind
        for _ in range(parts):
            part = first[i] - 1
            parent[part], sibling[part] = i, behind
            behind = part
            first[i] = first[part]
        mask = -8 - entry
        if -16 < entry < -1 and mask in (IS_UNKNOWN, IS_KNOWN) and program[begin + i - 1] < 0:
            cell[i] = cells
            cells += 1
    return cells


@kernel
def _write_part(
    root,
    truth,
    yes,
    no,
    begin,
    keyed,
    program,
    in_row,
    tree,
    goals,
    entered,
    kind,
    column,
    starts,
    low,
    high,
    negated,
    slot,
    greatest,
    tests,
    used,
    lists,
    listed,
    list_at,
):
    """Write the tests of a subtree for one truth value; return where they begin, and the ends."""
    first, parent, sibling, cell = tree
    wanted, yes_of, no_of = goals
    wanted[root], yes_of[root], no_of[root] = truth, yes, no
    i = root
    # from the root down, and from the last part to the first: all that is behind is written then
    while i >= first[root]:
        if i != root:
            _set_goal(i, begin, program, first, parent[i], sibling[i], goals, entered)
        entry, want, goal, other = program[begin + i], wanted[i], yes_of[i], no_of[i]
        where = np.int64(0)
        if cell[i] != NO_CELL:
            # TRUE or FALSE, never NULL
            if want != TRUE:
                goal, other = other, goal
            used = _emit(CELL, 0, cell[i], 0, 0, goal, other, tests, used)
            where = used // TEST - 1
        elif entry >= 0:
            if keyed and in_row[begin + i]:
                where = goal
            else:
                where, used, listed = _write_atom(
                    entry,
                    want,
                    goal,
                    other,
                    kind,
                    column,
                    starts,
                    low,
                    high,
                    negated,
                    slot,
                    greatest,
                    tests,
                    used,
                    lists,
                    listed,
                    list_at,
                )
        elif entry > -16 and entry < -1:
            mask = -8 - entry
            if want != TRUE:
                goal, other = other, goal
            if mask in (IS_UNKNOWN, IS_KNOWN):
                if mask == IS_KNOWN:
                    goal, other = other, goal
                where, used, listed = _write_atom(
                    program[begin + i - 1],
                    NULL,
                    goal,
                    other,
                    kind,
                    column,
                    starts,
                    low,
                    high,
                    negated,
                    slot,
                    greatest,
                    tests,
                    used,
                    lists,
                    listed,
                    list_at,
                )
            elif mask in (0, 7):
                where = goal if mask == 7 else other
            else:
                i -= 1
                continue
        elif entry <= -16 and (-16 - entry) // 2 == 0:
            # an AND of nothing is TRUE, an OR of nothing FALSE
            where = goal if want == (TRUE if entry % 2 == 0 else FALSE) else other
        else:
            i -= 1
            continue
        entered[first[i]] = where
        i = first[i] - 1
    return entered[first[root]], used, listed


@kernel
def _set_goal(i, begin, program, first, above, behind, goals, entered):
    """Say which truth value of a part is tested, and where to go on, from what it is a part of."""
    wanted, yes_of, no_of = goals
    entry, want, yes, no = program[begin + above], wanted[above], yes_of[above], no_of[above]
    if entry == -1:
        want = 1 - want
    elif entry > -16:
        # whether a truth value is in a mask is TRUE or FALSE, never NULL
        mask = -8 - entry
        if want != TRUE:
            yes, no = no, yes
        if mask & 1 << NULL:
            # NULL is accepted with TRUE or FALSE: all but the other one
            yes, no = no, yes
            mask = 7 - mask
        want = TRUE if mask == 1 << TRUE else FALSE
    elif behind >= 0:
        # a part with others behind: one wins an OR as TRUE and an AND as FALSE
        wins = TRUE if entry % 2 != 0 else FALSE
        if want == wins:
            no = entered[first[behind]]
        else:
            yes = entered[first[behind]]
    wanted[i], yes_of[i], no_of[i] = want, yes, no


@kernel
def _emit(test, column, a, b, c, yes, no, tests, used):
    """Append a test; return the end of the tests."""
    tests[used] = column << KIND_BITS | test
    tests[used + 1], tests[used + 2], tests[used + 3] = a, b, c
    tests[used + 4], tests[used + 5] = yes, no
    return used + TEST


@kernel
def _write_atom(
    atom,
    want,
    yes,
    no,
    kind,
    column,
    starts,
    low,
    high,
    negated,
    slot,
    greatest,
    tests,
    used,
    lists,
    listed,
    list_at,
):
    """Write tests of whether an atom has a truth value; return where they begin, and the ends."""
    c = np.int64(column[atom])
    if kind[atom] == COMPARE or kind[atom] == CONSTANT:
        used = _emit(BIT, 0, slot[atom], want, 0, yes, no, tests, used)
        return used // TEST - 1, used, listed
    if want == NULL:
        # what is about one attribute is NULL where that is, but for IS NULL itself
        if kind[atom] == IS_NULL:
            return np.int64(no), used, listed
        used = _emit(RANGE, c, 0, 0, 0, yes, no, tests, used)
        return used // TEST - 1, used, listed
    begin, end = starts[atom], starts[atom + 1]
    is_open = end - begin == 1 and (low[begin] == 1 or high[begin] == greatest[c])
    if kind[atom] == WITHIN and want == FALSE and is_open:
        # the other side of the one interval, without NULL
        first, last = (
            (high[begin] + 1, greatest[c]) if low[begin] == 1 else (1, np.int64(low[begin]) - 1)
        )
        used = _emit(RANGE, c, first, last, 0, yes, no, tests, used)
        return used // TEST - 1, used, listed
    negative = want == FALSE
    if kind[atom] == MATCHES and negated[atom] == 1:
        negative = not negative
    if negative:
        yes, no = no, yes
    if kind[atom] == MATCHES:
        used = _emit(PATTERN, 0, slot[atom], 0, 0, yes, no, tests, used)
    elif end == begin:
        # no code at all: a test that never holds
        used = _emit(RANGE, c, 1, 0, 0, yes, no, tests, used)
    elif end - begin == 1:
        used = _emit(RANGE, c, low[begin], high[begin], 0, yes, no, tests, used)
    elif high[end - 1] - low[begin] < MASK_CODES:
        codes = np.uint64(0)
        for i in range(begin, end):
            for code in range(low[i], high[i] + 1):
                codes |= np.uint64(1) << np.uint64(code - low[begin])
        lower = to_signed(np.int64(codes & np.uint64(0xFFFFFFFF)))
        upper = to_signed(np.int64(codes >> np.uint64(32)))
        used = _emit(CODES, c, low[begin], lower, upper, yes, no, tests, used)
    else:
        if list_at[atom] < 0:
            list_at[atom] = listed
            for i in range(begin, end):
                lists[listed], lists[listed + 1] = low[i], high[i] + 1
                listed += 2
        bounds = 2 * (end - begin)
        used = _emit(LIST, c, list_at[atom], list_at[atom] + bounds, 0, yes, no, tests, used)
    at = used // TEST - 1
    if negative and kind[atom] != IS_NULL:
        # not so, but not NULL either: `yes` and `no` are swapped here
        used = _emit(RANGE, c, 0, 0, 0, yes, at, tests, used)
        at = used // TEST - 1
    return at, used, listed


@inlined_kernel
def program_holds(at, tests, lists, codes, bits, event, stamp, cells, now):
    """Return whether the program that begins at a test accepts an event, a row of `bits`."""
    while at >= 0:
        p = at * TEST
        head = np.int64(load_unchecked(tests, p))
        test, column = head & ((1 << KIND_BITS) - 1), head >> KIND_BITS
        a, b = np.int64(load_unchecked(tests, p + 1)), np.int64(load_unchecked(tests, p + 2))
        holds = True
        if test == RANGE:
            holds = a <= np.int64(load_unchecked(codes, column)) <= b
        elif test == PATTERN:
            holds = load_unchecked(stamp, a) == now
        elif test == CODES:
            distance = np.int64(load_unchecked(codes, column)) - a
            holds = False
            if 0 <= distance < MASK_CODES:
                # of the halves, the one with the bit
                half = b if distance < 32 else np.int64(load_unchecked(tests, p + 3))
                holds = half >> (distance & 31) & 1 == 1
        elif test == BIT:
            holds = np.int64(bits[event, a]) == b
        elif test == LIST:
            # the first bound above the code
            code, left, right = np.int64(load_unchecked(codes, column)), a, b
            while left < right:
                middle = (left + right) >> 1
                if np.int64(load_unchecked(lists, middle)) <= code:
                    left = middle + 1
                else:
                    right = middle
            holds = (left - a) & 1 == 1
        elif test == CELL:
            holds = cells[a] != 0
        else:
            cells[a] = b
        at = np.int64(load_unchecked(tests, p + 4 if holds else p + 5))
    return at == ACCEPT
