-- Photons as a satellite counts them: where each came from, in degrees, and its energy in keV.
CREATE STREAM photons (
    ra          DOUBLE NOT NULL CHECK (ra BETWEEN 0 AND 360),
    dec         DOUBLE NOT NULL CHECK (dec BETWEEN -90 AND 90),
    energy      DOUBLE CHECK (energy > 0),
    detected_at TIMESTAMP NOT NULL,
    detector    STRING CHECK (detector IN ('A', 'B', 'C'))
);
