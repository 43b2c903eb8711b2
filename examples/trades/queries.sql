-- Standing queries over trades. Each event reaches every query whose WHERE is TRUE for it.

CREATE QUERY big_buys AS
SELECT * FROM trades WHERE side = 'buy' AND qty >= 1000;

CREATE QUERY penny_stocks AS
SELECT * FROM trades WHERE price < 1;

CREATE QUERY tech AS
SELECT * FROM trades WHERE symbol IN ('AAPL', 'MSFT', 'NVDA') AND NOT venue LIKE 'DARK%';

CREATE QUERY no_venue AS
SELECT * FROM trades WHERE venue IS NULL;

CREATE QUERY night_desk AS
SELECT * FROM trades
WHERE trader.desk = 'night' AND (qty > 500 OR price BETWEEN 100 AND 200);

CREATE QUERY loud_names AS
SELECT * FROM trades WHERE trader.name RLIKE '^[A-Z ]+$';

CREATE QUERY maybe_large AS
SELECT * FROM trades WHERE COALESCE(qty > 1000, TRUE);

-- Joins and aggregates are read and checked; running them is work in progress.
CREATE QUERY crossed AS
SELECT t.symbol, t.price, q.ask FROM trades AS t, quotes AS q
WHERE t.symbol = q.symbol AND t.price > q.ask;

CREATE QUERY volume AS
SELECT symbol, COUNT(*) AS trades, SUM(qty) AS shares FROM trades GROUP BY symbol;
