"""The decision whether a continuous query can run in bounded memory, with reason and witness.

After "Characterizing Memory Requirements for Queries over Continuous Data Streams". A query is cut
into `alternatives`, each of which is a `case`: a conjunctive query on number `lines`. The `theory`
decides on each by what follows from its comparisons, and all of them together decide on the
`boundedness` of the query. A no has a `witness`, rows of which every one must be kept, a
`diagnosis` and `suggestions`; a yes has `synopses`, what to keep. The `verdict` has it all.
"""
