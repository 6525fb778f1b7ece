"""The app: one run of a session's script; and, for `streamlit run`, the server that runs it."""

from streamlit import runtime

if runtime.exists():
    from pages.components.shared.frame import draw

    draw()
else:  # without what only pages need: the server answers before that has been imported
    import streamlit as st

    from pages.components.shared.callbacks import finish_callbacks
    from pages.components.shared.server import (
        lifespan,
        middleware,
        secrets_of_login,
        send_at_once,
        tell_files_apart,
    )

    finish_callbacks()
    send_at_once()
    tell_files_apart()
    app = st.App(
        __file__,
        middleware=[middleware()],
        lifespan=lifespan,
        secrets=secrets_of_login(),
    )
