"""The hot loops, each with a plain reference beside it, and the threads and compiler that run
them."""
