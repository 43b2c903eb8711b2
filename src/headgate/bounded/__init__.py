"""Can this continuous query live in bounded memory, and if not, which streams break it?

After "Characterizing Memory Requirements for Queries over Continuous Data Streams". A query is cut
into conjunctive ones (`cases`), each a set of comparisons on number lines (`conjunctive`). All that
follows from them (`closure`) decides: by the definition, over every local total order
(`definition`), or by a few patterns of comparisons (`checker`). A "no" comes with streams of which
every row must be remembered (`witness`), a "yes" with what to keep (`synopsis`).
"""
