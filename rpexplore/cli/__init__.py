"""The program `rpexplore`: the same verbs as the pages.

In reading order: `main` (the program), `console` (messages, JSON, progress). Verbs: `planning`,
`queries`, `release`, `postprocess`; beside them `*_options` (what is typed), `*_inputs` (what that
becomes), `*_facts` (what is printed): `plan_options`, `plan_inputs`, `plan_facts`, `query_options`,
`query_facts`, `release_options`. `webapp` is the app as a child process.

Imports every room; not pages.
"""
