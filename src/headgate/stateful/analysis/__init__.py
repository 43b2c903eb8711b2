"""The decision whether a continuous query can run in bounded memory, with reason and witness.

After "Characterizing Memory Requirements for Queries over Continuous Data Streams". A query is cut
into conjunctive `cases`, on which a `theory` decides by what follows from their comparisons. All of
them together decide on its `boundedness`. A no has a `witness`, rows of which every one must be
kept, a `diagnosis` and `suggestions`; a yes has `synopses`, what to keep. The `verdict` has it all.
"""
