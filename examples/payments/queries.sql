-- Filters: every payment is looked at, and forgotten.
CREATE QUERY refused AS
SELECT * FROM payments WHERE outcome = 'refused';

CREATE QUERY large_transfer AS
SELECT * FROM payments WHERE method = 'transfer' AND amount >= 100;

CREATE QUERY at_night AS
SELECT * FROM payments WHERE outcome = 'paid' AND at BETWEEN '2026-06-06 22:00:00' AND '2026-06-07 06:00:00';

-- A join: which orders were cancelled and paid, before or after? This money goes back.
CREATE QUERY cancelled_but_paid AS
SELECT o.day, o.number, o.country, p.method
FROM orders AS o, payments AS p
WHERE o.day = p.day AND o.number = p.number
  AND o.status = 'cancelled' AND p.outcome = 'paid';

-- DISTINCT: for which orders was more paid at once than they cost? Each is reported once.
CREATE QUERY overpaid AS
SELECT DISTINCT o.day, o.number
FROM orders AS o, payments AS p
WHERE o.day = p.day AND o.number = p.number
  AND o.status = 'placed' AND p.outcome = 'paid' AND p.amount > o.amount;

-- An aggregate: the country is known from the order, the method from the payment.
CREATE QUERY takings AS
SELECT o.country, p.method, COUNT(*) AS payments, SUM(p.amount) AS amount
FROM orders AS o, payments AS p
WHERE o.day = p.day AND o.number = p.number
  AND o.status = 'placed' AND p.outcome = 'paid'
GROUP BY o.country, p.method;
