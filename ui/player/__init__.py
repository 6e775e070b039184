"""The film player: a canvas that plays a simulation, and an inspector that says why.

``show`` puts a film on a page, ``compare`` two films on one clock; ``film_html`` makes the file
that plays offline. Encoding lives in :mod:`model.film`, drawing in the JavaScript modules beside
this file.
"""
