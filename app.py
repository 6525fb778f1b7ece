"""The app: one run of a session's script; and, for `streamlit run`, the server that runs it."""

if __name__ == "__main__":  # as Streamlit runs a script
    from pages.components.shared.frame import draw

    draw()
else:  # without what only pages need: the server answers before that has been imported
    import streamlit as st

    from pages.components.shared.server import lifespan, middleware

    app = st.App(__file__, middleware=middleware(), lifespan=lifespan)
