"""One pass over a block of JSON lines: each plain line becomes a row, any other one is marked.

A plain line is an object of declared names, each at most once and spelt as declared, with values
whose meaning is certain from their bytes. The kernels decide nothing else: what they do not take is
left to the parser that says why. So whatever they accept, `json_lines` accepts with the same value.

No load leaves the buffer. A line ends in a newline or where the padding of zeros begins, and no
loop passes either: both are control characters, which no token of JSON contains.
"""

import numpy as np

from headgate.events.kernels.values import (
    BACKSLASH,
    BLANK,
    BOOLEAN,
    CLOCK,
    CLOSE,
    COLON,
    COMMA,
    DAY,
    DECIMAL,
    DOUBLE,
    EXACT_POWERS,
    INTEGER,
    LOWER_E,
    LOWER_F,
    LOWER_N,
    LOWER_T,
    MAX_DIGITS,
    MAX_MANTISSA,
    MINUS,
    MISFIT,
    NEWLINE,
    OPEN,
    QUOTE,
    RETURN,
    ROW,
    SKIP,
    SPACE,
    TAB,
    TEXT,
    UNUSUAL,
    WHOLE_POWERS,
    WIDE_ROW,
    read_clock,
    read_day,
    read_number,
)
from headgate.jit import inlined_kernel, kernel, load_unchecked


@inlined_kernel
def skip_spaces(data, at):
    """Return the first place that is no space of JSON; a newline counts as the end of the line."""
    place = at
    byte = load_unchecked(data, place)
    while byte in (SPACE, TAB, RETURN):
        place += 1
        byte = load_unchecked(data, place)
    return place


@inlined_kernel
def is_line_end(data, at, end):
    """Return whether nothing but a newline is left of the line that ends at `end`."""
    return at == end or (load_unchecked(data, at) == NEWLINE and at + 1 == end)


@inlined_kernel
def is_word(data, at, second, third, fourth):
    """Return whether these bytes follow the one at a place; no byte is read behind a wrong one."""
    return (
        load_unchecked(data, at + 1) == second
        and load_unchecked(data, at + 2) == third
        and load_unchecked(data, at + 3) == fourth
    )


@inlined_kernel
def is_name(data, at, end, names, first, length):
    """Return whether a name and a quote stand at a place of the line that ends at `end`."""
    same = at + length < end and load_unchecked(data, at + length) == QUOTE
    place = np.int64(0)
    while same and place < length:
        same = load_unchecked(data, at + place) == load_unchecked(names, first + place)
        place += 1
    return same


@kernel
def scan_lines(  # noqa: PLR0915 -- in functions that pass the arrays on, it took twice as long
    data,
    ends,
    first,
    max_length,
    names,
    name_ends,
    kinds,
    details,
    required,
    low,
    high,
    follow,
    values,
    doubles,
    lengths,
    valid,
    status,
):
    """Write the values of all plain lines, row after row, and what each line is; return the rows.

    `data` has the lines and padding; line i ends, with its newline, at `ends[i]`, and the first
    starts at `first`. Longer ones than `max_length` are not looked at.
    For each attribute: its name lies in `names` up to `name_ends`, `kinds` says what becomes of its
    value, `required` whether it must not be NULL, `low` and `high` bound it, and `details` is the
    scale of a DECIMAL, or whether a TIMESTAMP without an offset is in UTC. `follow` has room for
    one more than the attributes: `follow[a + 1]` is the one that came after `a` the last time.
    The results, attributes × lines: `values`, which `doubles` shows as such, has the ordinal or the
    place of a text, `lengths` its length, and `valid`, zero at first, is 1 where there is a value.
    """
    count = len(kinds)
    last_seen = np.full(count, -1, np.int64)  # the last line that has the attribute
    needed = required.sum()
    row = np.int64(0)
    start = np.int64(first)
    for line in range(len(ends)):
        end = ends[line]
        at, start = start, end
        if end - at > max_length:
            status[line] = UNUSUAL
            continue
        at = skip_spaces(data, at)
        if load_unchecked(data, at) != OPEN:
            status[line] = BLANK if is_line_end(data, at, end) else UNUSUAL
            continue
        bits = np.uint8(0)  # of all bytes of texts together: the highest one says "not ASCII"
        present = np.int64(0)  # required attributes that have a value
        previous = np.int64(0)  # the attribute before, plus 1
        is_plain = True
        at = skip_spaces(data, at + 1)
        is_open = load_unchecked(data, at) != CLOSE
        while is_open:
            # The name: most often the one that stood here in the line before.
            if load_unchecked(data, at) != QUOTE:
                is_plain = False
                break
            at += 1
            attribute = follow[previous]
            begin = name_ends[attribute]
            length = name_ends[attribute + 1] - begin
            if not is_name(data, at, end, names, begin, length):
                attribute = np.int64(-1)
                for other in range(count):
                    begin = name_ends[other]
                    length = name_ends[other + 1] - begin
                    if is_name(data, at, end, names, begin, length):
                        attribute = np.int64(other)
                        break
                if attribute < 0:
                    is_plain = False
                    break
                follow[previous] = attribute
            if last_seen[attribute] == line:
                is_plain = False
                break
            last_seen[attribute] = line
            previous = attribute + 1
            at = skip_spaces(data, at + length + 1)
            if load_unchecked(data, at) != COLON:
                is_plain = False
                break
            at = skip_spaces(data, at + 1)
            # The value. `number` is its ordinal, or MISFIT.
            byte = load_unchecked(data, at)
            kind = kinds[attribute]
            is_value = True
            if byte == QUOTE:
                at += 1
                begin = at
                byte = load_unchecked(data, at)
                while byte >= SPACE and byte not in (QUOTE, BACKSLASH):
                    bits |= byte
                    at += 1
                    byte = load_unchecked(data, at)
                if byte != QUOTE:
                    is_plain = False
                    break
                length = at - begin
                at += 1
                if kind == TEXT:
                    values[attribute, row] = begin
                    lengths[attribute, row] = length
                elif kind in (CLOCK, DAY):
                    number = MISFIT
                    if kind == CLOCK:
                        number = read_clock(data, begin, length, details[attribute] == 1)
                    elif length == 10:
                        number = read_day(data, begin)
                    if number < low[attribute] or number > high[attribute]:
                        is_plain = False
                        break
                    values[attribute, row] = number
                elif kind != SKIP:
                    is_plain = False
                    break
            elif byte == LOWER_N:
                if not is_word(data, at, 117, 108, 108):  # null
                    is_plain = False
                    break
                at += 4
                is_value = False
            elif byte in (LOWER_T, LOWER_F):
                number = np.int64(byte == LOWER_T)
                if number == 1 and is_word(data, at, 114, 117, 101):  # true
                    at += 4
                elif number == 0 and is_word(data, at, 97, 108, 115):  # fals
                    at += 4
                    if load_unchecked(data, at) != LOWER_E:
                        is_plain = False
                        break
                    at += 1
                else:
                    is_plain = False
                    break
                if kind == BOOLEAN and low[attribute] <= number <= high[attribute]:
                    values[attribute, row] = number
                elif kind != SKIP:
                    is_plain = False
                    break
            else:
                # A number, or what is never plain: an array, an object, an error.
                is_negative = byte == MINUS
                at, mantissa, fraction, exponent, is_whole = read_number(data, at + is_negative)
                if at < 0:
                    is_plain = False
                    break
                if kind == DOUBLE:
                    power = exponent - fraction
                    if mantissa > MAX_MANTISSA or power < -22 or power > 22:
                        is_plain = False
                        break
                    # Both operands are exact, so the one operation rounds as the text would
                    # (Clinger, "How to read floating point numbers accurately", section 3).
                    nearest = np.float64(mantissa)
                    if power >= 0:
                        nearest *= EXACT_POWERS[power]
                    else:
                        nearest /= EXACT_POWERS[-power]
                    # The integer -0 is 0, but -0.0 is not 0.0.
                    if is_negative and not (is_whole and mantissa == 0):
                        nearest = -nearest
                    doubles[attribute, row] = nearest
                elif kind in (INTEGER, DECIMAL):
                    number = mantissa
                    if kind == DECIMAL:
                        # A fraction may be shorter than the scale, and is then filled up.
                        shift = details[attribute] - fraction
                        if exponent != 0 or shift < 0 or shift > MAX_DIGITS:
                            is_plain = False
                            break
                        if number >= WHOLE_POWERS[MAX_DIGITS - shift]:
                            is_plain = False
                            break
                        number *= WHOLE_POWERS[shift]
                    elif not is_whole:
                        is_plain = False
                        break
                    if is_negative:
                        number = -number
                    if number < low[attribute] or number > high[attribute]:
                        is_plain = False
                        break
                    values[attribute, row] = number
                elif kind != SKIP:
                    is_plain = False
                    break
            if is_value and kind != SKIP:
                valid[attribute, row] = 1
                present += required[attribute]
            # What comes next: another name or the end of the object.
            at = skip_spaces(data, at)
            byte = load_unchecked(data, at)
            if byte == COMMA:
                at = skip_spaces(data, at + 1)
            elif byte == CLOSE:
                is_open = False
            else:
                is_plain = False
                break
        # Behind the object only spaces may follow, and nothing required may be missing.
        if is_plain:
            is_plain = is_line_end(data, skip_spaces(data, at + 1), end)
        if is_plain and present == needed:
            status[line] = WIDE_ROW if bits >= 128 else ROW
            row += 1
        else:
            status[line] = UNUSUAL
            for attribute in range(count):
                valid[attribute, row] = 0
    return row
