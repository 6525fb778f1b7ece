"""The program `rpexplore`: the same verbs as the pages.

In reading order: `main` (the program), `commands` (of Click, made of annotated functions),
`console` (messages, JSON), `progress_line`. Verbs: `planning`, `plan_files`, `compare`, `rehearse`,
`approve`, `release`, `postprocess`, `synthesize`, `publish`, `registry`, `queries`, `areas`, `app`.
Beside them what is typed, `options` and `area_options`; what that becomes, `inputs`, `area_inputs`,
`preset_inputs`, `adaptive_plans`, `smooth_weights`, `smallest_budget`, `publishable`; what is
printed, `facts`, `adaptive_facts`, `area_facts`, `ledger_facts`; and `area_releases`. `webapp` is
the app as a child process, `planning_server` the shared one.

Imports every room; not pages.
"""
