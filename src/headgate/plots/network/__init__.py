"""A plan as a picture: where peers stand, and which streams lie beside each other on a link."""
