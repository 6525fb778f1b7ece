"""The program `rpexplore`: the same verbs as the pages.

In reading order: `main` (the program), `console` (messages, JSON, progress); `plan_options`,
`plan_inputs`, `plan_facts`; `queries`, `query_options`, `query_facts`;
`release`, `release_options`; `postprocess`; `webapp` (the app as a child process).

Imports every room; not pages.
"""
