"""Columns of a simulation to Plotly figures: pure functions, one module a family of charts.

Nothing here knows Streamlit. Words come in as a function ``t(key, **values)``, colors from
:mod:`charts.palette`, so that a figure is the same in a page, a notebook and a test.
"""
