"""Values as text writes them: numbers, days and moments, and what is made of those of an attribute.

No load leaves the buffer, as long as a control character other than a tab, such as the newline or
the padding, stands behind the text: no loop passes one.
"""

import numpy as np

from headgate.jit import kernel, load_unchecked

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
