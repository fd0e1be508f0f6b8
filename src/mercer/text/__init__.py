"""Text and names as columns: tokens, n-grams, hashes, and the names behind hashed columns."""
