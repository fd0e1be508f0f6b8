"""Text: documents of any kind, their n-grams, and the columns that these are counted in."""
