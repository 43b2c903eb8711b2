"""A Spark session: finding Java, starting the JVM, relaying its output, explaining failures."""
