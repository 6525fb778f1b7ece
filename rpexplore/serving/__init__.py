"""The server that runs the app: who may come in, how much each may take, how it begins and ends.

Beside the app and its pages this is the one package that may import Streamlit, whose sessions and
logins it counts and checks. It draws nothing.

In reading order: `server`, `guard`, `accounts`; `sessions`, `tasks`, `planning_tasks`,
`release_tasks`; `compression`, `streamlit_parts`.

Imports every room but `cli`; not pages.
"""
