"""The compiled part of the BE-Tree, over arrays that are laid out in `pools`.

`nodes` chooses and keeps buckets and partitions, `leaves` holds expressions, `cut` divides full
leaves, `change` inserts and deletes, `adapt` recycles what ranks low, `match` evaluates events and
`expressions` those events that are expressions themselves.
"""
