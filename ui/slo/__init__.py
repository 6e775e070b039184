"""The lesson on SLOs and admission: what its parts compute, show and say."""
