"""One pass over a block of JSON lines: each plain line becomes a row, any other one is marked.

A plain line is an object of declared names, each at most once and spelt as declared, with values
whose meaning is certain from their bytes. The kernels decide nothing else: what they do not take is
left to the parser that says why. So whatever they accept, `json_lines` accepts with the same value.

No load leaves the buffer. A line ends in a newline or where the padding of zeros begins, and no
loop passes either: both are control characters, which no token of JSON contains.
"""

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked

# what a line is
ROW, WIDE_ROW, BLANK, UNUSUAL = 0, 1, 2, 3  # a wide row has text that is not ASCII

# what is made of the value of an attribute
SKIP, BOOLEAN, INTEGER, DECIMAL, DOUBLE, TEXT, DAY, CLOCK = 0, 1, 2, 3, 4, 5, 6, 7

MISFIT = np.int64(-(1 << 63))  # no value of any type, so it can say that there is none
MAX_DIGITS = 18  # as many always fit into 64 bits
MAX_MANTISSA = 1 << 53
WHOLE_POWERS = np.array([10**n for n in range(MAX_DIGITS + 1)], np.int64)
EXACT_POWERS = np.array([10.0**n for n in range(23)])  # the powers of ten that a double holds
TAB, NEWLINE, RETURN, SPACE, QUOTE, PLUS, COMMA, MINUS, POINT = 9, 10, 13, 32, 34, 43, 44, 45, 46
ZERO, NINE, COLON, UPPER_E, UPPER_T, UPPER_Z, BACKSLASH = 48, 57, 58, 69, 84, 90, 92
LOWER_E, LOWER_F, LOWER_N, LOWER_T, OPEN, CLOSE = 101, 102, 110, 116, 123, 125


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
def read_digits(data, at, count):
    """Return the number that `count` digits write; MISFIT if one of them is no digit."""
    number = np.int64(0)
    # No digit is looked for behind a wrong one, so nothing behind the end of the line is read.
    for place in range(at, at + count):
        byte = np.int64(load_unchecked(data, place))
        if byte < ZERO or byte > NINE:
            return MISFIT
        number = number * 10 + byte - ZERO
    return number


@kernel
def read_day(data, at):
    """Return the days from 1970 to a date written as 2013-01-31; MISFIT if there is none."""
    year = read_digits(data, at, 4)
    month = read_digits(data, at + 5, 2)
    day = read_digits(data, at + 8, 2)
    if load_unchecked(data, at + 4) != MINUS or load_unchecked(data, at + 7) != MINUS:
        return MISFIT
    if year < 1 or month < 1 or month > 12 or day < 1:  # MISFIT is below 1, too
        return MISFIT
    # Only days after the 28th need the length of the month.
    if day > 28:
        last = 30 if month in (4, 6, 9, 11) else 31
        if month == 2:
            last = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
        if day > last:
            return MISFIT
    # Years that begin in March have the leap day at their end, and 400 of them 146,097 days
    # (Hinnant, "chrono-compatible low-level date algorithms", days_from_civil).
    if month <= 2:
        year -= 1
        month += 12
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    era = year // 400
    of_era = year - era * 400
    days = of_era * 365 + of_era // 4 - of_era // 100 + of_year
    return era * 146_097 + days - 719_468


@kernel
def read_clock(data, at, length, is_utc):
    """Return the microseconds from 1970 to a moment; MISFIT for one in a form that is not common.

    The forms are 2013-01-31T10:00, with seconds and up to six digits of a fraction or without, and
    then Z or an offset such as +01:00; where `is_utc`, nothing stands for Z.
    """
    if length < 16:
        return MISFIT
    day = read_day(data, at)
    hour = read_digits(data, at + 11, 2)
    minute = read_digits(data, at + 14, 2)
    between = load_unchecked(data, at + 10)
    if day == MISFIT or (between not in (UPPER_T, SPACE)):
        return MISFIT
    if load_unchecked(data, at + 13) != COLON:
        return MISFIT
    if hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return MISFIT
    moment = ((day * 24 + hour) * 60 + minute) * 60_000_000
    place, end = at + 16, at + length
    # Seconds, and their fraction.
    if place + 3 <= end and load_unchecked(data, place) == COLON:
        second = read_digits(data, place + 1, 2)
        if second < 0 or second > 59:
            return MISFIT
        moment += second * 1_000_000
        place += 3
        if place < end and load_unchecked(data, place) == POINT:
            place += 1
            first, unit = place, np.int64(1_000_000)
            byte = np.int64(load_unchecked(data, place))
            while place < end and place - first < 6 and ZERO <= byte <= NINE:
                unit //= 10
                moment += (byte - ZERO) * unit
                place += 1
                byte = np.int64(load_unchecked(data, place))
            if place == first:
                return MISFIT
    # The offset, behind which nothing may stand.
    if place == end:
        return moment if is_utc else MISFIT
    sign = load_unchecked(data, place)
    if sign == UPPER_Z and place + 1 == end:
        return moment
    if (sign not in (PLUS, MINUS)) or place + 6 != end:
        return MISFIT
    hours = read_digits(data, place + 1, 2)
    minutes = read_digits(data, place + 4, 2)
    if load_unchecked(data, place + 3) != COLON or hours < 0 or hours > 23:
        return MISFIT
    if minutes < 0 or minutes > 59:
        return MISFIT
    offset = (hours * 60 + minutes) * 60_000_000
    return moment - offset if sign == PLUS else moment + offset


@kernel
def read_number(data, at):
    """Return where a number ends, its digits as one number, those of its fraction, its exponent.

    The end is negative where there is no number in JSON's grammar, or one of more than 18 digits.
    The last result says whether it has neither a point nor an exponent. The sign is not read.
    """
    refused = (np.int64(-1), np.int64(0), np.int64(0), np.int64(0), False)
    place, mantissa = at, np.int64(0)
    byte = np.int64(load_unchecked(data, place))
    while ZERO <= byte <= NINE:  # too many digits overflow, and are refused below
        mantissa = mantissa * 10 + byte - ZERO
        place += 1
        byte = np.int64(load_unchecked(data, place))
    digits = place - at
    if digits == 0 or digits > MAX_DIGITS or (digits > 1 and load_unchecked(data, at) == ZERO):
        return refused
    is_whole = True
    fraction, exponent = np.int64(0), np.int64(0)
    if byte == POINT:
        is_whole = False
        place += 1
        first = place
        byte = np.int64(load_unchecked(data, place))
        while ZERO <= byte <= NINE:
            mantissa = mantissa * 10 + byte - ZERO
            place += 1
            byte = np.int64(load_unchecked(data, place))
        fraction = place - first
        if fraction == 0 or digits + fraction > MAX_DIGITS:
            return refused
    if byte in (LOWER_E, UPPER_E):
        is_whole = False
        place += 1
        byte = np.int64(load_unchecked(data, place))
        is_negative = byte == MINUS
        if is_negative or byte == PLUS:
            place += 1
            byte = np.int64(load_unchecked(data, place))
        first = place
        while ZERO <= byte <= NINE:
            exponent = exponent * 10 + byte - ZERO
            place += 1
            byte = np.int64(load_unchecked(data, place))
        if place == first or place - first > MAX_DIGITS:
            return refused
        if is_negative:
            exponent = -exponent
    return place, mantissa, fraction, exponent, is_whole


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


@kernel
def copy_texts(data, begins, lengths, valid, offsets):
    """Return the texts of a column one after the other, and write where each of them starts.

    `offsets` has one item more than the column has rows: the end of the last text.
    """
    total = np.int64(0)
    for row in range(len(begins)):
        offsets[row] = total
        if valid[row]:
            total += lengths[row]
    offsets[len(begins)] = total
    texts = np.empty(total, np.uint8)
    for row in range(len(begins)):
        # Byte by byte: texts are short, and a slice for each of them was slower.
        to = np.int64(offsets[row])
        begin = begins[row]
        for place in range(np.int64(offsets[row + 1]) - to):
            texts[to + place] = load_unchecked(data, begin + place)
    return texts
