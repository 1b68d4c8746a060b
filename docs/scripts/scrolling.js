/* Whoever has no mouse scrolls wide tables and code by the arrow keys, once they have the focus. */
addEventListener("load", () => setTimeout(() => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) wide.tabIndex = 0;
}));
