"""What decides, on number lines: variables, what follows from their comparisons, and conditions.

A conjunctive query (`conjunctive`) is closed under what follows (`closure`). Then the conditions
are decided by patterns of joins (`checker`), or by the definition, over all orders (`definition`).
"""
