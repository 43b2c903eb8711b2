-- Every flight that left New York City in 2013. Clock times are local and written hhmm, so that 517
-- is 5:17; a delay is in minutes, and below zero when early. A cancelled flight has no dep_time.
CREATE STREAM flights (
    year            INT NOT NULL,
    month           INT NOT NULL CHECK (month BETWEEN 1 AND 12),
    day             INT NOT NULL CHECK (day BETWEEN 1 AND 31),
    dep_time        INT CHECK (dep_time BETWEEN 1 AND 2400),
    sched_dep_time  INT NOT NULL CHECK (sched_dep_time BETWEEN 0 AND 2359),
    dep_delay       INT,
    arr_time        INT CHECK (arr_time BETWEEN 1 AND 2400),
    sched_arr_time  INT NOT NULL CHECK (sched_arr_time BETWEEN 0 AND 2359),
    arr_delay       INT,
    carrier         STRING NOT NULL,
    flight          INT NOT NULL CHECK (flight > 0),
    tailnum         STRING,
    origin          STRING NOT NULL CHECK (origin IN ('EWR', 'JFK', 'LGA')),
    dest            STRING NOT NULL,
    air_time        INT CHECK (air_time > 0),
    distance        INT NOT NULL CHECK (distance > 0),
    hour            INT NOT NULL CHECK (hour BETWEEN 0 AND 23),
    minute          INT NOT NULL CHECK (minute BETWEEN 0 AND 59),
    time_hour       TIMESTAMP NOT NULL
);
