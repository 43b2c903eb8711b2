"""BE-Tree: tell expressions apart by one attribute after the other.

"Analysis and optimization for Boolean expression indexing". `index` is the index; `tree` holds
everything together. Queries become conjunctions (`expressions`), whose distinct predicates get
numbers (`predicates`, with a `bitmap`) and whose constants become numbers too (`values`). `events`
reads a batch into arrays, and `kernels` does the rest. `semantics` has what differs from SQL, and
`inspection` describes, draws and checks a tree.
"""
