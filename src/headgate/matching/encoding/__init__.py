"""Events and conditions as the indexes read them: codes of values, and which patterns match a text.

code_book      values become the numbers of regions that no condition divides
event_columns  the columns of a batch, each encoded once
text_search    which of very many patterns match a text
"""
