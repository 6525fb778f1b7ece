"""The mark of the product and its name, drawn here: four cells of a table, one of them fainter.

For a named icon Streamlit would make the browser ask a font service; and a picture does not see
the fonts of the page that it is on, so the letters are strokes.
"""

_CELLS = """<g fill="#3c76c3"><rect x="1" y="2" width="9" height="9" rx="2"/>
<rect x="12" y="2" width="9" height="9" rx="2"/><rect x="1" y="13" width="9" height="9" rx="2"/>
<rect x="12" y="13" width="9" height="9" rx="2" opacity=".4"/></g>"""

ICON = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 1 22 22">{_CELLS}</svg>"""

# One path a letter, in the text colour of the theme: r, p, e, x, p, l, o, r, e.
LOGO = f"""<svg xmlns="http://www.w3.org/2000/svg" width="132" height="24" viewBox="0 0 132 24">
<style>
path {{ fill: none; stroke: #060c13; stroke-width: 2; stroke-linecap: round }}
@media (prefers-color-scheme: dark) {{ path {{ stroke: #e8edf3 }} }}
</style>{_CELLS}
<path d="M32 17V8m0 4.5a4 4 0 0 1 4.5-4.4"/>
<path d="M41 22V8m0 4.5a4.4 4.5 0 1 1 0 .1"/>
<path d="M53.5 12.6h8.6a4.3 4.5 0 1 0-1.300 3.2"/>
<path d="M66 8l7 9m0-9l-7 9"/>
<path d="M77.5 22V8m0 4.5a4.4 4.5 0 1 1 0 .1"/>
<path d="M91 4v13"/>
<path d="M95 12.5a4.4 4.5 0 1 1 0 .1"/>
<path d="M108.5 17V8m0 4.5a4 4 0 0 1 4.5-4.4"/>
<path d="M116 12.6h8.6a4.3 4.5 0 1 0-1.300 3.2"/>
</svg>"""
