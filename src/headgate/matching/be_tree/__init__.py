"""BE-Tree: expressions are told apart by one attribute after the other.

"Analysis and optimization for Boolean expression indexing". Queries become conjunctions, their
predicates get numbers (`predicates`, `bitmap`, `labels`), and the tree is arrays (`pools`): where
an expression belongs (`place`), when a leaf is cut (`cut`, `capacity`), what changes and adapts
(`change`, `adapt`), and how events find their way (`match`; `semantics` for events that are
expressions). `growing` holds it all together, `check` says whether the rules hold.
"""
