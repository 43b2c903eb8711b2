-- A shop's sale in June 2026. Its order numbers start again every day, so that a day and a number are
-- one order; order_id is the same order in the books, and never comes again.
CREATE STREAM orders (
    order_id  BIGINT NOT NULL,
    day       DATE NOT NULL CHECK (day BETWEEN DATE '2026-06-01' AND DATE '2026-06-30'),
    number    INT NOT NULL CHECK (number BETWEEN 1 AND 400),
    status    STRING NOT NULL CHECK (status IN ('placed', 'cancelled')),
    country   STRING NOT NULL CHECK (country IN ('AT', 'CH', 'DE', 'FR', 'IT', 'NL')),
    tier      STRING NOT NULL CHECK (tier IN ('basic', 'plus', 'business')),
    amount    DECIMAL(8, 2) NOT NULL CHECK (amount > 0),
    placed    TIMESTAMP NOT NULL
);

-- What the payment provider says of them, in any order, sometimes before the shop does.
CREATE STREAM payments (
    order_id  BIGINT NOT NULL,
    day       DATE NOT NULL CHECK (day BETWEEN DATE '2026-06-01' AND DATE '2026-06-30'),
    number    INT NOT NULL CHECK (number BETWEEN 1 AND 400),
    outcome   STRING NOT NULL CHECK (outcome IN ('paid', 'refused', 'refunded')),
    method    STRING NOT NULL CHECK (method IN ('card', 'transfer', 'wallet')),
    amount    DECIMAL(8, 2) NOT NULL CHECK (amount > 0),
    at        TIMESTAMP NOT NULL
);
