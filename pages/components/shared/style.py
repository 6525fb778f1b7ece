"""What the theme in .streamlit/config.toml cannot say of the looks of the app."""

# The primary colour is made for white text upon it (buttons, chosen options). Where Streamlit
# writes text in that colour itself, it would be too faint in the dark theme. Numbers and their
# names break into lines, where Streamlit would cut them off.
STYLE = """<style>
button[data-selected="true"] p,
[role="tab"][aria-selected="true"] p,
[data-testid="stSlider"] [data-testid="stMarkdownContainer"] p {
    color: light-dark(#060c13, #e8edf3);
}
/* Code in the colour of text: the colours of its words are too faint on their ground. */
[data-testid="stCode"] code span { color: inherit !important; font: inherit !important; }
.modebar { display: none; }  /* clicked for `chart_pictures` */
[data-testid="stMetricLabel"] p, [data-testid="stMetricValue"] div {
    overflow: visible;
    white-space: normal;
    text-wrap: balance;
}
/* The toolbar of a table stands above it: not upon the field that filters its rows. */
[data-testid="stElementContainer"]:has(> .stMultiSelect)
    + [data-testid="stElementContainer"]:has(.stDataFrame) {
    margin-top: 1.75rem;
}
.st-key-steps a { padding-inline: 0; }
.st-key-recent button { justify-content: flex-start; padding-inline: 0; text-align: left; }
/* Plan and Tables: inputs beside the answer, above it where there is little room. */
.st-key-layout {
    display: grid;
    grid-template-columns: 18rem minmax(0, 1fr);
    gap: 1rem 2.5rem;
    align-items: start;
}
/* The Queries page: the same, with more room for the lines of the list. */
.st-key-list-layout {
    display: grid;
    grid-template-columns: 25rem minmax(0, 1fr);
    gap: 1rem 2.5rem;
    align-items: start;
}
/* Plan: the heading above the inputs; where there is little room, the figures between the two. */
.st-key-layout:has(> * > .st-key-heading) { grid-template-rows: auto 1fr; }
.st-key-layout > :has(> .st-key-answer) { grid-column: 2; grid-row: 1 / span 2; }
@media (max-width: 1100px) {
    .st-key-layout, .st-key-list-layout { grid-template-columns: minmax(0, 1fr); }
    .st-key-layout:has(> * > .st-key-heading) { display: flex; }
    .st-key-layout > :has(> .st-key-answer), .st-key-layout > * > .st-key-answer {
        display: contents;
    }
    .st-key-layout :has(> .st-key-heading) { order: -2; }
    .st-key-layout :has(> .st-key-figures) { order: -1; }
}
.st-key-inputs {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(15.5rem, 1fr));
    gap: 0.75rem 2rem;
    align-items: start;
}
.st-key-figures {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(12.5rem, 1fr));
    gap: 0.75rem;
}
.st-key-sizes {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
    gap: 0.75rem;
}
.st-key-below {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
    gap: 0.75rem 2rem;
    align-items: start;
}
.st-key-publishable [data-testid="stMetricValue"] {
    color: light-dark(#1d4f91, #8fb8f0);
    font-size: 2.5rem;
    line-height: 1.1;
}
.rows { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
.rows th, .rows td { padding: 0.35rem 0.75rem; text-align: right; font-weight: 400; }
.rows thead th { font-size: 0.875rem; font-weight: 600; }
.rows tbody tr { border-top: 1px solid light-dark(#dfe5ec, #2c3743); }
.rows th:first-child { text-align: left; padding-left: 0; }
.rows.bars th:last-child { text-align: left; }
.rows.bars td:last-child { width: 38%; }
.bar { display: flex; align-items: center; gap: 0.5rem; }
.bar i {
    position: relative; flex: 1; height: 0.6rem; border-radius: 0.3rem;
    background: light-dark(#dfe7f1, #2c3743);
}
.bar b { position: absolute; inset: 0 auto 0 0; border-radius: 0.3rem; background: #3c76c3; }
.bar u {
    position: absolute; top: -0.25rem; bottom: -0.25rem; width: 2px;
    background: light-dark(#4a5664, #cfd8e2);
}
.bar span { width: 4rem; text-align: right; }
@media (max-width: 640px) {
    /* Options may stand on several lines: each with its left edge, behind the chosen one too. */
    [data-testid="stButtonGroup"] button:not([data-selected="true"]) {
        border-left-color: light-dark(#7f8b99, #6b7a8c);
    }
    .rows .wide { display: none; }
    .rows.bars td:last-child { width: 45%; }
}
</style>"""
