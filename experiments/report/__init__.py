"""What a run was, on one page: `report.html`, a single file that needs no network, and `trace.json` for Perfetto.

A report is made in two steps. Python gathers one typed document out of a run's folder (`document.py` says what is in
it), and `page.py` puts it, with the style, the scripts of `template/` and one library, into one file.

The library is D3 (`page.py` finds it in the package `mpld3`): 238 kB, and what it makes are elements of the page. So a
drawing has the page's colours, is read aloud, can be printed and searched, and each of its links can be pointed at.
Bokeh (1.1 MB) and Plotly (4.8 MB) draw on a canvas or bring a design of their own, and uPlot and Tabulator are in no
Python package that is kept up. Tables and the drawing of a fabric are our own, on top of D3.
"""
