-- Twenty standing queries. Each flight reaches every query whose WHERE is TRUE for it.

-- Left more than two hours late.
CREATE QUERY very_late AS
SELECT * FROM flights WHERE dep_delay > 120;

-- Left at least ten minutes early: be at the gate in time.
CREATE QUERY early_bird AS
SELECT * FROM flights WHERE dep_delay <= -10;

-- Late to leave, and yet on time at the other end.
CREATE QUERY made_up_time AS
SELECT * FROM flights WHERE dep_delay > 15 AND arr_delay <= 0;

-- Left on time, and lost an hour and more on the way.
CREATE QUERY lost_in_the_air AS
SELECT * FROM flights WHERE dep_delay <= 0 AND arr_delay >= 60;

-- An hour late at the gate and later still on arrival: one attribute against another.
CREATE QUERY from_bad_to_worse AS
SELECT * FROM flights WHERE dep_delay >= 60 AND arr_delay > dep_delay;

-- Never left.
CREATE QUERY cancelled AS
SELECT * FROM flights WHERE dep_time IS NULL;

-- Left, but has no arrival delay: it came down somewhere else, or nobody wrote it down.
CREATE QUERY went_astray AS
SELECT * FROM flights WHERE dep_time IS NOT NULL AND arr_delay IS NULL;

-- Late, or perhaps late: COALESCE says what to make of a flight whose delay is unknown.
CREATE QUERY late_or_unknown AS
SELECT * FROM flights WHERE COALESCE(arr_delay > 180, TRUE);

-- Red-eyes: in the air at midnight, so the clock at arrival shows less than at departure.
CREATE QUERY red_eye AS
SELECT * FROM flights WHERE hour >= 20 AND arr_time < dep_time AND air_time > 120;

-- Coast to coast from Kennedy or Newark.
CREATE QUERY coast_to_coast AS
SELECT * FROM flights
WHERE origin IN ('JFK', 'EWR') AND dest IN ('LAX', 'SFO', 'SAN', 'SEA', 'PDX');

-- The longest journeys.
CREATE QUERY long_haul AS
SELECT * FROM flights WHERE distance > 2600 OR air_time > 390;

-- Hops that a train would do as well.
CREATE QUERY take_the_train AS
SELECT * FROM flights WHERE dest IN ('BOS', 'PHL', 'BWI', 'DCA', 'PVD', 'ALB') AND air_time < 45;

-- Aloha.
CREATE QUERY to_hawaii AS
SELECT * FROM flights WHERE dest = 'HNL';

-- Aircraft whose number ends in JB, as JetBlue's do, an hour late or more.
CREATE QUERY late_jetblue AS
SELECT * FROM flights WHERE tailnum LIKE 'N%JB' AND dep_delay >= 60;

-- A number to remember: three times the same digit.
CREATE QUERY lucky_tail AS
SELECT * FROM flights WHERE tailnum RLIKE '^N(111|222|333|444|555|666|777|888|999)';

-- The eve of Thanksgiving, from noon on.
CREATE QUERY thanksgiving_rush AS
SELECT * FROM flights WHERE month = 11 AND day = 27 AND hour >= 12;

-- The blizzard of the 8th and 9th of February, by the clock in UTC.
CREATE QUERY blizzard AS
SELECT * FROM flights
WHERE time_hour BETWEEN TIMESTAMP '2013-02-08 17:00:00Z' AND TIMESTAMP '2013-02-10 05:00:00Z'
  AND (dep_time IS NULL OR dep_delay > 60);

-- Flight number 1 of whichever airline, not late.
CREATE QUERY flagship AS
SELECT * FROM flights WHERE flight = 1 AND NOT dep_delay > 0;

-- Meant to stay silent: a whole day late.
CREATE QUERY lost_a_day AS
SELECT * FROM flights WHERE dep_delay >= 1440;

-- Meant to stay silent: nothing is scheduled to leave between two and five at night.
CREATE QUERY night_curfew AS
SELECT * FROM flights WHERE hour BETWEEN 2 AND 4;
