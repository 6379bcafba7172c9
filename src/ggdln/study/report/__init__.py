"""The report: one HTML page that says what holds, shows every figure and its numbers, and needs no network.

It needs Jinja2, markdown-it-py and plotly, which the rest of the library doesn't.
"""
