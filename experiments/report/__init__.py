"""The report of a run: `report.html`, a single page that needs no network, and `trace.json` for Perfetto.

A report is made in two steps. Python gathers a typed document from a run's folder (`document.py` defines it), and
`write.py` puts it, with the style, the scripts of `template/` and one library, into one file.

The library is D3 (`write.py` finds it in the package `mpld3`): 238 kB, and it makes elements of the page. Therefore a
drawing has the page's colours, works with screen readers, printing and search, and its links react to the pointer.
Bokeh (1.1 MB) and Plotly (4.8 MB) draw on a canvas or have their own design, and no maintained Python package has uPlot
or Tabulator. The tables and the drawing of a fabric are part of the kit, on top of D3.
"""
