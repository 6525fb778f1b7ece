"""The program `rpexplore`: the same verbs as the pages.

In reading order: `main` (the program), `console` (messages, JSON, progress). Verbs: `planning`,
`plan_files`, `areas`, `queries`, `release`, `postprocess`; beside them `options` (what is typed),
`inputs` (what that becomes), `smallest_budget`, `facts` and `ledger_facts` (what is printed).
`webapp` is the app as a child process, `planning_server` the shared one.

Imports every room; not pages.
"""
