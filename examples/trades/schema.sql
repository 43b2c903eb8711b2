-- A stream is named attributes with types. A CHECK declares which values an attribute may take.
CREATE STREAM trades (
    symbol  STRING NOT NULL,
    side    STRING CHECK (side IN ('buy', 'sell')),
    price   DECIMAL(10, 2) CHECK (price > 0),
    qty     INT CHECK (qty > 0),
    venue   STRING,
    at      TIMESTAMP,
    trader.name STRING,
    trader.desk STRING
);

CREATE STREAM quotes (
    symbol STRING NOT NULL,
    bid    DECIMAL(10, 2),
    ask    DECIMAL(10, 2)
);
