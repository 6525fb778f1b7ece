"""What is said of released tables: noisy figures only.

`released_cells` are those of a table, ready to be drawn; `subtotals` are sums of them, in words;
`shrinkage` says how far smooth tables are from unbiased ones, by group.

Imports `analysis` and what that may import.
"""
