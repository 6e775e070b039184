"""Rules of style of the Reference page: quiet cards, wide formulas, and what a printer gets."""

__all__ = ["STYLE"]

STYLE = """
<style>
[data-testid="stMain"] h1 { padding: 1.1rem 0 0 }
/* a card reads as one block; Streamlit's pull at the end of a text would cut its last line off */
[class*="st-key-card-"] { gap: .5rem }
[class*="st-key-card-"] [data-testid="stMarkdownContainer"] { margin-bottom: 0 }
[class*="st-key-card-"] [data-testid="stMarkdownContainer"] :is(p, ul) { margin-bottom: .25rem }
[class*="st-key-card-"] table { margin: 0; font-size: .875rem }
[class*="st-key-card-"] :is(th, td) { padding: .15rem .5rem !important }
[class*="st-key-card-"] td .katex { font-size: 1.25em }
/* a claim, what to say instead and why: side by side, without lines */
:is([class*="st-key-card-A"], [class*="st-key-card-B"]) table {
  width: 100%; table-layout: fixed; font-size: 1rem; border: 0 }
:is([class*="st-key-card-A"], [class*="st-key-card-B"]) :is(tr, th, td) { border: 0 !important }
:is([class*="st-key-card-A"], [class*="st-key-card-B"]) :is(th, td) {
  padding: .25rem 1.5rem .25rem 0 !important; vertical-align: top }
:is([class*="st-key-card-A"], [class*="st-key-card-B"]) th { font-weight: 400; opacity: .7 }
[class*="st-key-links-"] :is(p, button) {
  line-height: 1.5; min-height: 0; padding-block: 0; margin-bottom: 0 !important }
/* a formula wider than its card can be moved sideways */
[class*="st-key-card-"] .katex-display {
  overflow: auto hidden; margin: 0; padding: .75em .25em 1em !important }
/* tables of the catalogue use the width of the page; wide ones can be moved sideways */
[class*="st-key-wide-"] [data-testid="stMarkdownContainer"] { overflow-x: auto }
[class*="st-key-wide-"] table {
  width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums }
[class*="st-key-wide-"] :is(th, td) { padding: .25rem .5rem !important; vertical-align: top }
[class*="st-key-wide-"] th { vertical-align: bottom; word-break: keep-all }
:is(.st-key-wide-devices, .st-key-wide-models) td:not(:last-child) { white-space: nowrap }
@media print {
  html { font-size: 11px }
  [data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stToolbar"],
  .st-key-tools, [class*="st-key-pager-"], [class*="st-key-links-"],
  [data-testid="stButtonGroup"], [data-testid="stButton"],
  [data-testid="stCaptionContainer"] { display: none !important }
  html, body, #root, .stApp, .stApp :is([data-testid="stAppViewContainer"],
  [data-testid="stMain"], [data-testid="stMainBlockContainer"]) {
    position: static !important; overflow: visible !important; height: auto !important;
    max-width: none !important; padding: 0 !important; margin: 0 !important;
    background: white !important }
  .stApp, .stApp * { color: black !important }
  [class*="st-key-card-"] .stMarkdownBadge { background: none !important; border: 1px solid #999 }
  [class*="st-key-card-"] .katex-display { font-size: .85em }
  [class*="st-key-card-"] { break-inside: avoid; border-color: #999 !important }
}
</style>
"""
