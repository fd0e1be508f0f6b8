"""L1: models of few features out of many."""
