"""One pass over a block of lines of CSV: each plain line becomes a row, any other one is marked.

A plain line is a record by itself, with as many fields as the header. Its fields are bare, or stand
in quotes and have none inside, and their meaning is certain from their bytes. The kernel decides
nothing else: what it does not take is left to `csv_records`, which says why.

A line with a quote that is not plain may be the first of many lines of one record, so the kernel
stops before it.
"""

import numpy as np

from headgate.events.kernels.values import (
    BLANK,
    BOOLEAN,
    CLOCK,
    DAY,
    DECIMAL,
    DOUBLE,
    EXACT_POWERS,
    INTEGER,
    MAX_DIGITS,
    MAX_MANTISSA,
    MINUS,
    MISFIT,
    NEWLINE,
    PLUS,
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

LOWER_CASE = 32  # the bit by which a letter differs from its capital


@inlined_kernel
def is_word_in_any_case(data, at, word):
    """Return whether the letters of a word, given in lower case, stand at a place."""
    same = True
    place = np.int64(0)
    while same and place < len(word):
        same = (load_unchecked(data, at + place) | LOWER_CASE) == word[place]
        place += 1
    return same


TRUE = np.frombuffer(b"true", np.uint8)
FALSE = np.frombuffer(b"false", np.uint8)


@kernel
def read_value(data, at, end, kind, detail):
    """Return whether a text from `at` to `end` is certainly a value, its ordinal, and its double.

    The text is not empty, and has no spaces around it.
    """
    refused = (False, np.int64(0), 0.0)
    length = end - at
    if kind == BOOLEAN:
        if length == 4 and is_word_in_any_case(data, at, TRUE):
            return True, np.int64(1), 0.0
        return length == 5 and is_word_in_any_case(data, at, FALSE), np.int64(0), 0.0
    if kind == CLOCK:
        number = read_clock(data, at, length, detail == 1)
        return number != MISFIT, number, 0.0
    if kind == DAY:
        number = read_day(data, at) if length == 10 else MISFIT
        return number != MISFIT, number, 0.0
    if kind not in (INTEGER, DECIMAL, DOUBLE):
        return refused
    sign = load_unchecked(data, at)
    is_negative = sign == MINUS
    begin = at + 1 if is_negative or sign == PLUS else at
    behind, mantissa, fraction, exponent, is_whole = read_number(data, begin)
    if behind != end:
        return refused
    if kind == DOUBLE:
        power = exponent - fraction
        if mantissa > MAX_MANTISSA or power < -22 or power > 22:
            return refused
        # both operands are exact, so the one operation rounds as the text would (Clinger)
        nearest = np.float64(mantissa)
        if power >= 0:
            nearest *= EXACT_POWERS[power]
        else:
            nearest /= EXACT_POWERS[-power]
        # the integer -0 is 0, but -0.0 is not 0.0
        if is_negative and not (is_whole and mantissa == 0):
            nearest = -nearest
        return True, np.int64(0), nearest
    number = mantissa
    if kind == DECIMAL:
        # a fraction may be shorter than the scale, and is then filled up
        shift = detail - fraction
        if exponent != 0 or shift < 0 or shift > MAX_DIGITS:
            return refused
        if number >= WHOLE_POWERS[MAX_DIGITS - shift]:
            return refused
        number *= WHOLE_POWERS[shift]
    elif not is_whole:
        return refused
    return True, -number if is_negative else number, 0.0


@kernel
def scan_lines(  # noqa: PLR0915 -- one loop over the bytes, as in `json_lines`
    data,
    ends,
    from_line,
    row,
    max_length,
    separator,
    fields,
    kinds,
    details,
    required,
    low,
    high,
    values,
    doubles,
    lengths,
    valid,
    status,
):
    """Write the values of plain lines from `from_line` on, row after row, and what each line is.

    Return the line before which it stopped, and the next row. `data` has the lines and padding;
    line i ends, with its newline, at `ends[i]`. `fields` has the number of the attribute that each
    field of a record is, −1 if it is none. What there is for each attribute, and the results, are
    those of `json_lines.scan_lines`; `valid` is written in all rows.
    """
    needed = np.int64(0)  # required attributes, of which all must have a value
    for attribute in range(len(required)):
        needed += required[attribute]
    for line in range(from_line, len(ends)):
        at = ends[line - 1] if line else np.int64(0)
        end = ends[line]
        # the text: without its newline, and without one return before that
        stop = end
        if stop > at and load_unchecked(data, stop - 1) == NEWLINE:
            stop -= 1
        if stop > at and load_unchecked(data, stop - 1) == RETURN:
            stop -= 1
        if end - at > max_length:
            return line, row
        bits = np.uint8(0)  # of all bytes together: the highest one says "not ASCII"
        is_blank, has_quote = True, False
        for place in range(at, stop):
            byte = load_unchecked(data, place)
            bits |= byte
            has_quote |= byte == QUOTE
            # spaces of every kind; one that separates stands between fields
            is_blank &= byte != separator and (byte == SPACE or TAB <= byte <= RETURN)
        if is_blank:
            status[line] = BLANK
            continue
        is_plain = True
        present = np.int64(0)  # required attributes that have a value
        field = 0
        while True:
            if field == len(fields):
                is_plain = False
                break
            attribute = fields[field]
            field += 1
            # the content of the field, from `begin` to `behind`, and where the field ends
            is_quoted = at < stop and load_unchecked(data, at) == QUOTE
            begin = at + 1 if is_quoted else at
            behind = begin
            while behind < stop:
                byte = load_unchecked(data, behind)
                if byte == QUOTE or (byte == separator and not is_quoted):
                    break
                behind += 1
            is_end_quote = behind < stop and load_unchecked(data, behind) == QUOTE
            at = behind + 1 if is_quoted else behind
            # a bare field has no quote, and a quoted one ends with the only one that it has
            if is_end_quote != is_quoted:
                is_plain = False
                break
            if at < stop and load_unchecked(data, at) != separator:
                is_plain = False
                break
            if attribute >= 0 and kinds[attribute] != SKIP:
                kind = kinds[attribute]
                is_value = True
                if kind == TEXT:
                    is_value = is_quoted or behind > begin
                    values[attribute, row] = begin
                    lengths[attribute, row] = behind - begin
                else:
                    while begin < behind and load_unchecked(data, begin) in (SPACE, TAB):
                        begin += 1
                    while begin < behind and load_unchecked(data, behind - 1) in (SPACE, TAB):
                        behind -= 1
                    if begin == behind:
                        # empty: NULL, but in quotes no value of any type
                        is_value = False
                        is_plain = not is_quoted
                    else:
                        is_plain, number, nearest = read_value(
                            data, begin, behind, kind, details[attribute]
                        )
                        if kind == DOUBLE:
                            doubles[attribute, row] = nearest
                        else:
                            is_plain &= low[attribute] <= number <= high[attribute]
                            values[attribute, row] = number
                    if not is_plain:
                        break
                valid[attribute, row] = is_value
                if is_value:
                    present += required[attribute]
            if at == stop:
                break
            at += 1
        if is_plain and field == len(fields) and present == needed:
            status[line] = WIDE_ROW if bits >= 128 else ROW
            row += 1
        elif has_quote:
            return line, row
        else:
            status[line] = UNUSUAL
    return len(ends), row
