"""The program `rpexplore`: the same verbs as the pages.

Read `main` first (the program and its verbs), then `commands` (how an annotated function becomes a
command of Click), `console` (messages, JSON) and one verb, `planning`: the others are built alike.

verbs    `plan_files`, `compare`, `rehearse`, `approve`, `release`, `postprocess`, `synthesize`,
         `publish`, `registry`, `queries`, `areas`, `app`
typed    `options`, `area_options`; what becomes of it: `inputs`, `area_inputs`, `preset_inputs`,
         `adaptive_plans`, `smooth_weights`, `smallest_budget`, `publishable`
printed  `facts`, `adaptive_facts`, `area_facts`, `ledger_facts`, `area_releases`, `progress_line`
app      `webapp` (the app as a child process), `planning_server` (the shared one)

Imports every room; not pages.
"""
