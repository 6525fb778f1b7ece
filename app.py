"""The app: one run of a session's script; and, for `streamlit run`, the server that runs it."""

if __name__ == "__main__":  # as Streamlit runs a script
    from pages.components.shared.frame import draw

    draw()
else:  # without what only pages need: the server answers before that has been imported
    from functools import partial

    import streamlit as st

    from rpexplore.serving.server import lifespan, middleware

    parts = ("shared.frame", "home.doors", "plan.overview", "plan.results")
    first = [f"pages.components.{part}" for part in parts]
    app = st.App(__file__, middleware=middleware(), lifespan=partial(lifespan, first_modules=first))
