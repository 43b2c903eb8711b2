-- The same question by order_id. There is no end to these, and any of them may be paid at any time.
CREATE QUERY cancelled_but_paid AS
SELECT o.order_id, p.method
FROM orders AS o, payments AS p
WHERE o.order_id = p.order_id AND o.status = 'cancelled' AND p.outcome = 'paid';
