"""The app: page config, session state, navigation."""
