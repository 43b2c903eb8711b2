"""How a batch becomes durable, exactly once: log, output, locks, Spark's checkpoint, compaction."""
