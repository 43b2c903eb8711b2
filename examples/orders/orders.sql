CREATE STREAM orders (
    customer STRING NOT NULL,
    country  STRING,
    amount   DECIMAL(10, 2) CHECK (amount >= 0),
    items    INT
);

CREATE QUERY large      AS SELECT * FROM orders WHERE amount > 1000;
CREATE QUERY nordic     AS SELECT * FROM orders WHERE country IN ('DK', 'FI', 'NO', 'SE');
CREATE QUERY bulk_small AS SELECT * FROM orders WHERE items >= 50 AND amount < 100;
