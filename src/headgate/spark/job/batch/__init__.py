"""What tasks do with a batch: read events, match and reduce them, stage rows, report counts."""
