"""Can this continuous query run in bounded memory, and if not, which streams break it?

After "Characterizing Memory Requirements for Queries over Continuous Data Streams". A query is cut
into conjunctive `cases`, on which a `theory` decides by what follows from their comparisons. All of
them together decide on its `boundedness`. A no has a `witness`, rows of which every one must be
kept, a `diagnosis` and `suggestions`; a yes has `synopses`, what to keep. The `verdict` has it all.
"""
