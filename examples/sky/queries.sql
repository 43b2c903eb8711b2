-- Query 1: the Vela supernova remnant.
CREATE QUERY vela AS
SELECT ra, dec, energy, detected_at FROM photons
WHERE ra BETWEEN 120 AND 138 AND dec BETWEEN -49 AND -40;

-- Query 2: a smaller and younger remnant that lies inside the picture of the first; only its hard photons.
CREATE QUERY vela_junior AS
SELECT ra, dec, energy FROM photons
WHERE ra BETWEEN 130.5 AND 135.5 AND dec BETWEEN -48 AND -45 AND energy >= 1.3;

-- Query 3: most of Vela again, without its rim and further to the north.
CREATE QUERY vela_north AS
SELECT ra, dec, energy, detected_at FROM photons
WHERE ra BETWEEN 122 AND 136 AND dec BETWEEN -46 AND -38;
