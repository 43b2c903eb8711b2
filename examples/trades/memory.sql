-- Joins and aggregates: which of them can run continuously in bounded memory?

CREATE QUERY by_side AS
SELECT side, COUNT(*) AS trades, SUM(qty) AS shares FROM trades GROUP BY side;

CREATE QUERY by_symbol AS
SELECT symbol, COUNT(*) AS trades FROM trades GROUP BY symbol;

CREATE QUERY above_ask AS
SELECT DISTINCT t.side FROM trades AS t, quotes AS q
WHERE t.symbol = 'AAPL' AND q.symbol = 'AAPL' AND t.price > q.ask;

CREATE QUERY above_ask_each AS
SELECT t.side FROM trades AS t, quotes AS q
WHERE t.symbol = 'AAPL' AND q.symbol = 'AAPL' AND t.price > q.ask;

CREATE QUERY recent AS
SELECT t.symbol, t.price, q.ask
FROM last_rows(trades, 1000) AS t, last_rows(quotes, 1000) AS q
WHERE t.symbol = q.symbol AND t.price > q.ask;
