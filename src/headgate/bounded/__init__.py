"""Can this continuous query live in bounded memory, and if not, which streams break it?

After "Characterizing Memory Requirements for Queries over Continuous Data Streams". A query is cut
into conjunctive `cases`, on which a `theory` decides by what follows from their comparisons. All of
them together are the `analysis`. A no has a `witness`, rows of which every one must be remembered,
somebody to `blame`, and `cures`; a yes has `synopses`, what to keep. The `verdict` has it all, and
`running` runs it.
"""

import typing

__all__ = ["Run", "run"]

if typing.TYPE_CHECKING:
    from headgate.bounded.running.opening import run as run
    from headgate.bounded.running.run import Run as Run
else:
    # the verdict alone needs none of what runs it
    def __getattr__(name: str) -> object:
        if name in __all__:
            from headgate.bounded.running import opening

            return getattr(opening, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
