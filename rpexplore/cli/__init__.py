"""The program `rpexplore`: the same verbs as the pages.

In reading order: `main` (the program), `console` (messages, JSON). Verbs: `plan`, `counts`, `look`,
`report`, `release`, `answers`, `after`, `synthesize`, `publish`, `serve`. Beside them what is
typed, `options` (and commands of Click, made of annotated functions) and `area_options`; what that
becomes, `inputs`, `codebooks` and `plan_inputs`; what is printed, `facts`.

Imports every room; not pages.
"""

from rpexplore.common.processes import heed_memory_limit

heed_memory_limit()  # the verbs import linear algebra
