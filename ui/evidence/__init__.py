"""What the page on validation shows: records, their words, table and pictures."""
